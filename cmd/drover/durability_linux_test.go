package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/session"
)

// disk is a small file system of its own under the state folder of a rig, which
// only the rig's processes see.
type disk struct {
	t    *testing.T
	path string // as the rig's processes see it
	root string // of their file system, as the test sees it
}

// smallDisk gives a rig a disk. Where that is not permitted the test is skipped:
// TestFileSizeLimit needs no permission.
func smallDisk(r *rig, size string) *disk {
	r.t.Helper()
	if err := os.MkdirAll(r.state(), 0o700); err != nil {
		r.t.Fatal(err)
	}
	holder := exec.Command("sh", "-c", `mount --make-rprivate / && mount -t tmpfs -o "size=$0" tmpfs "$1" && echo ready && exec cat`, size, r.state())
	holder.Dir = r.dir
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	enter := []string{"nsenter", "-m", "-w"}
	if os.Getuid() != 0 {
		holder.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		holder.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		holder.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		enter = append(enter, "-U", "--preserve-credentials")
	}
	in, err := holder.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := exec.LookPath("nsenter"); err != nil {
		r.t.Skip(err)
	}
	if err := holder.Start(); err != nil {
		r.t.Skipf("no namespaces here: %v", err)
	}
	r.t.Cleanup(func() {
		in.Close()
		_ = holder.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		r.t.Skipf("no mounts here: %q, %v", line, err)
	}
	r.prefix = append(enter, "-t", fmt.Sprint(holder.Process.Pid), "--")
	return &disk{r.t, r.state(), fmt.Sprintf("/proc/%d/root", holder.Process.Pid)}
}

// fill leaves no room.
func (d *disk) fill() {
	f, err := os.Create(filepath.Join(d.root, d.path, "filler"))
	if err != nil {
		d.t.Error(err)
		return
	}
	defer f.Close()
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		d.t.Error(err)
	}
}

// free takes away what fill wrote.
func (d *disk) free() {
	if err := os.Remove(filepath.Join(d.root, d.path, "filler")); err != nil {
		d.t.Error(err)
	}
}

// readOnly makes the disk read-only, or writable again.
func (d *disk) readOnly(r *rig, on bool) {
	d.t.Helper()
	option := "remount,rw"
	if on {
		option = "remount,ro"
	}
	line := append(append([]string{}, r.prefix...), "mount", "-o", option, d.path)
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		d.t.Fatalf("%v: %s", err, out)
	}
}

// wholeLog is that of the rig, on a copy: the store would leave the namespace.
func (d *disk) wholeLog(r *rig) (*session.State, []session.Record) {
	d.t.Helper()
	c := *r
	c.home = d.t.TempDir()
	if err := os.CopyFS(c.state(), os.DirFS(filepath.Join(d.root, d.path))); err != nil {
		d.t.Fatal(err)
	}
	return c.wholeLog(c.newest())
}

// long is more than a block of a disk.
var long = strings.Repeat("long ", 2000)

// A disk that is full for a while costs nothing: what has effects waits, the
// rest goes on, and everything is saved in the end.
func TestFullDiskForAWhile(t *testing.T) {
	r := rigFor(t, "", "brook-7b")
	d := smallDisk(r, "256k")
	r.serve(func(_ *rig, c *enginetest.Chat) enginetest.Answer {
		call := enginetest.Call{ID: fmt.Sprint("c", rounds(c)), Name: "read", Arguments: `{"path":"a.txt"}`}
		text := "short"
		switch rounds(c) {
		case 1:
			d.fill()
			call, text = shellCall("c1", "echo full >> ran"), long
		case 3:
			d.free()
			call = shellCall("c3", "echo free >> ran")
		case 4:
			return enginetest.Answer{Text: "done"}
		}
		return enginetest.Answer{Text: text, Calls: []enginetest.Call{call}}
	})
	if err := os.WriteFile(filepath.Join(r.dir, "a.txt"), []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := r.run(r.turn("", "work"))
	if o.status != 0 {
		t.Fatalf("%+v", o)
	}
	said := notices(o.stdout)
	if !strings.Contains(said, "not saved") || !strings.Contains(said, "no space left on device") || !strings.Contains(said, "saved again") {
		t.Errorf("notices %q", said)
	}
	got := make(map[string]string)
	for _, ev := range events(o.stdout) {
		if ev.Type == "tool_result" {
			got[ev.ID] = ev.Status
		}
	}
	if fmt.Sprint(got) != "map[c0:ok c1:notExecuted c2:ok c3:ok]" {
		t.Errorf("results %v", got)
	}
	if ran, _ := os.ReadFile(filepath.Join(r.dir, "ran")); string(ran) != "free\n" {
		t.Errorf("ran %q", ran)
	}
	if s, _ := d.wholeLog(r); len(s.Messages) != 10 || s.OpenTurn {
		t.Errorf("%d messages: %+v", len(s.Messages), s.Messages)
	}
}

// A disk that stays full loses the end of the turn, which was said, and nothing
// before it.
func TestFullDiskToTheEnd(t *testing.T) {
	r := rigFor(t, "", "brook-7b")
	d := smallDisk(r, "256k")
	r.serve(func(_ *rig, c *enginetest.Chat) enginetest.Answer {
		if prompts(c) == 2 {
			d.fill()
			return enginetest.Answer{Text: long}
		}
		return enginetest.Answer{Text: "short"}
	})
	for _, prompt := range []string{"one", "two"} {
		id, status := "", 0
		if prompt == "two" {
			s, _ := d.wholeLog(r)
			id, status = s.ID, exitFailed // a loss is a failure, whatever the answer was
		}
		o := r.run(r.turn(id, prompt))
		if o.status != status || strings.Contains(notices(o.stdout), "not saved") != (prompt == "two") {
			t.Fatalf("%s: %+v", prompt, o)
		}
	}
	// On the full disk a new session lives in memory, and is told so.
	o := r.run(r.turn("", "three"))
	if o.status != 0 || !strings.Contains(notices(o.stdout), "memory only") || !strings.Contains(o.stdout, "short") {
		t.Errorf("a new session on a full disk: %+v", o)
	}
	if o := r.run(r.command("sessions", "verify")); o.status != 0 {
		t.Errorf("verify: %+v", o)
	}
	d.free()
	s, _ := d.wholeLog(r)
	if len(s.Messages) != 3 || !s.OpenTurn {
		t.Errorf("%d messages, open %v", len(s.Messages), s.OpenTurn)
	}
	if o := r.run(r.turn(s.ID, "four")); o.status != 0 || notices(o.stdout) != "" {
		t.Errorf("going on: %+v", o)
	}
	if s, _ := d.wholeLog(r); len(s.Messages) != 5 || s.OpenTurn {
		t.Errorf("%d messages, open %v", len(s.Messages), s.OpenTurn)
	}
}

// On a read-only disk sessions can be read and not gone on with; a new one lives
// in memory.
func TestReadOnlyDisk(t *testing.T) {
	r := rigFor(t, "", "brook-7b")
	d := smallDisk(r, "256k")
	r.serve(nil)
	if o := r.run(r.turn("", "one")); o.status != 0 {
		t.Fatalf("%+v", o)
	}
	before, _ := d.wholeLog(r)
	d.readOnly(r, true)
	if o := r.run(r.turn("", "new")); o.status != 0 || !strings.Contains(notices(o.stdout), "memory only") || !strings.Contains(notices(o.stdout), "read-only file system") {
		t.Errorf("a new session: %+v", o)
	}
	if o := r.run(r.turn(before.ID, "go on")); o.status != exitUsage || !strings.Contains(o.stdout, "read-only file system") {
		t.Errorf("going on: %+v", o)
	}
	for args, status := range map[string]int{
		"show last": 0, "export last": 0, "verify": 0, "rm last": exitFailed, "repair last": exitFailed, "--json": 0,
	} {
		o := r.run(r.command(append([]string{"sessions"}, strings.Fields(args)...)...))
		if o.status != status || status != 0 && !strings.Contains(o.stderr, "read-only file system") {
			t.Errorf("sessions %s: %+v", args, o)
		}
	}
	d.readOnly(r, false)
	if o := r.run(r.turn(before.ID, "go on")); o.status != 0 {
		t.Errorf("going on when it can be written again: %+v", o)
	}
	if s, _ := d.wholeLog(r); len(s.Messages) != 4 {
		t.Errorf("%d messages", len(s.Messages))
	}
}

// A limit of the size of files is a disk that is full for one file.
func TestFileSizeLimit(t *testing.T) {
	r := newRig(t, func(_ *rig, c *enginetest.Chat) enginetest.Answer {
		if rounds(c) == 0 {
			return enginetest.Answer{Text: strings.Repeat(long, 3), Calls: []enginetest.Call{shellCall("c", "echo ran >> ran")}}
		}
		return enginetest.Answer{Text: "done"}
	})
	r.prefix = []string{"sh", "-c", `ulimit -f 32 && exec "$0" "$@"`}
	o := r.run(r.turn("", "work"))
	if o.status != exitFailed {
		t.Fatalf("status %d: %s", o.status, o.stdout)
	}
	if said := notices(o.stdout); !strings.Contains(said, "not saved") || !strings.Contains(said, "file too large") {
		t.Errorf("notices %q", said)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "ran")); err == nil {
		t.Error("a call ran whose intent was not saved")
	}
	id := r.newest()
	r.prefix = nil
	if o := r.run(r.turn(id, "go on")); o.status != 0 {
		t.Errorf("going on without the limit: %+v", o)
	}
	if s, _ := r.wholeLog(id); len(s.Messages) < 3 {
		t.Errorf("%d messages", len(s.Messages))
	}
}
