package session

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The test binary is also the second process that some tests need: with this
// variable set it does what its value says with the session named by the
// arguments.
const roleVariable = "DROVER_SESSION_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "hold":
		hold(os.Args[1], os.Args[2])
	case "write":
		write(os.Args[1], os.Args[2])
	default:
		os.Exit(m.Run())
	}
}

// child starts the test binary in a role.
func child(t *testing.T, role, root, id string) (cmd *exec.Cmd, in io.WriteCloser, out *bufio.Reader) {
	t.Helper()
	cmd = exec.Command(os.Args[0], root, id)
	// The race detector would sleep for a second at exit.
	cmd.Env = append(os.Environ(), roleVariable+"="+role, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd, in, bufio.NewReader(stdout)
}

// hold opens a session until its input ends.
func hold(root, id string) {
	l, _, err := NewStore(root).Open(id)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("open")
	io.Copy(io.Discard, os.Stdin)
	l.Close()
}

func TestSecondProcess(t *testing.T) {
	store := NewStore(fastDir(t))
	id, _ := create(t, store, 1)
	cmd, in, out := child(t, "hold", store.root, id)
	if line, err := out.ReadString('\n'); line != "open\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	_, _, err := store.Open(id)
	inUse, ok := errors.AsType[*InUseError](err)
	if !ok || inUse.PID != cmd.Process.Pid {
		t.Errorf("beside pid %d: %v", cmd.Process.Pid, err)
	}
	if _, err := store.Read(id); err != nil {
		t.Errorf("reading beside a writer: %v", err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	l, _, err := store.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	// The other way round, and a lock whose holder was killed.
	_, _, out = child(t, "hold", store.root, id)
	line, _ := out.ReadString('\n')
	if want := "is in use by pid " + strconv.Itoa(os.Getpid()); !strings.Contains(line, want) {
		t.Errorf("the child says %q, want %q", line, want)
	}
}

// write goes on with a session, and reports each record once it is acknowledged,
// until it is killed.
func write(root, id string) {
	l, s, err := NewStore(root).Open(id)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for n := s.Turns + 1; ; n++ {
		for _, rec := range turn(n) {
			if err := l.Append(rec); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			s.Apply(rec)
			fmt.Println(rec.stamp().Seq, rec.Kind())
		}
	}
}

// Killed at any moment, a session keeps everything that was acknowledged, and
// goes on with a history that an engine takes.
func TestKilledWriters(t *testing.T) {
	const kills = 30
	store := NewStore(fastDir(t))
	id, _ := create(t, store, 0)
	acknowledged := make(map[int]string)
	for i := range kills {
		cmd, _, out := child(t, "write", store.root, id)
		for range 1 + i*7%kills { // a different moment of a turn each time
			seq, kind, err := readAck(out)
			if err != nil {
				t.Fatal(err)
			}
			acknowledged[seq] = kind
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for { // what it still said before it died
			seq, kind, err := readAck(out)
			if err != nil {
				break
			}
			acknowledged[seq] = kind
		}
		cmd.Wait()

		found := make(map[int]string)
		for rec, err := range store.Records(id) {
			if err != nil {
				t.Fatal(err)
			}
			found[rec.stamp().Seq] = rec.Kind()
		}
		for seq, kind := range acknowledged {
			if found[seq] != kind {
				t.Fatalf("after kill %d record %d is %q, and %q was acknowledged", i, seq, found[seq], kind)
			}
		}
	}
	l, s, err := store.Open(id)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	validHistory(t, s)
	if s.OpenTurn || !s.Intact() || s.Turns < kills/2 {
		t.Errorf("after all: %d turns, open %v, %v", s.Turns, s.OpenTurn, s.Warnings)
	}
}

// readAck reads what write reports.
func readAck(out *bufio.Reader) (seq int, kind string, err error) {
	line, err := out.ReadString('\n')
	if err != nil {
		return 0, "", err
	}
	fields := strings.Fields(line)
	if len(fields) == 2 {
		if seq, err = strconv.Atoi(fields[0]); err == nil {
			return seq, fields[1], nil
		}
	}
	return 0, "", fmt.Errorf("the child says %q", line)
}

// Two writers at once, if the lock ever fails, cost a warning and no session.
func TestTwoWriters(t *testing.T) {
	a, b := user("from A"), user("from B")
	lines := slices.Concat(logOf(t, user("first"), a), logOf(t, user("first"), b)[len(logOf(t)):])
	s := foldLines(t, strings.SplitAfter(string(lines), "\n")[1:]...)
	if len(s.Messages) != 4 || !s.Intact() || !warned(s, "used before") || s.NextSeq != 2 {
		t.Errorf("%q, %v", short(s.Messages), s.Warnings)
	}
}

// Two writers that have got past the lock write behind each other.
func TestTwoWritersLoseNothing(t *testing.T) {
	store := NewStore(fastDir(t))
	id, _ := create(t, store, 1)
	var logs [2]*Log
	var states [2]*State
	for i := range logs {
		var err error
		if logs[i], states[i], err = store.Open(id); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(lockPath(logs[i].path)); err != nil {
			t.Skip(err) // no open file can be removed here
		}
	}
	var want []string
	for n, i := range []int{0, 1, 1, 0, 0, 1, 0, 1} {
		text := fmt.Sprintf("%d from %d%s", n, i, strings.Repeat("!", 10*(n%3)))
		want = append(want, "u("+text+")")
		// What rides along is in the file too, and not written twice.
		appendAll(t, logs[i], states[i], &Unknown{Type: fmt.Sprintf("ride/%d", n), Data: []byte(`{}`)})
		if n%2 == 0 {
			appendAll(t, logs[1-i], states[1-i], &Unknown{Type: fmt.Sprintf("other/%d", n), Data: []byte(`{}`)})
		}
		appendAll(t, logs[i], states[i], user(text))
	}
	for _, l := range logs {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s, err := store.Read(id)
	if err != nil {
		t.Fatal(err)
	}
	if got := short(s.Messages); !slices.Equal(got[len(got)-len(want):], want) || !s.Intact() || !warned(s, "used before") {
		t.Errorf("got %q, %v", got, s.Warnings)
	}
	data, _ := os.ReadFile(logs[0].path)
	if n := bytes.Count(data, []byte(`"type":"ride/`)); n != len(want) {
		t.Errorf("%d records that ride along, want %d", n, len(want))
	}
	if n := bytes.Count(data, []byte(`"type":"other/`)); n != len(want)/2 {
		t.Errorf("%d records of the other that ride along, want %d", n, len(want)/2)
	}
}
