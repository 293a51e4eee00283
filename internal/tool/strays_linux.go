package tool

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
)

// maxProcEnviron bounds the environment of a process that is looked at: Linux lets a
// program start with 2 MiB of arguments and environment by default.
const maxProcEnviron = 2 << 20

// proc is what /proc says of a process.
type proc struct {
	pid, parent, group int
	state              string
	started            uint64 // in ticks since the system started: a number is used again, with another time
}

// id tells a process from all others.
type id struct {
	pid     int
	started uint64
}

func (p *proc) id() id { return id{p.pid, p.started} }

func (p *proc) runs() bool { return p.state != "Z" && p.state != "X" }

// processes lists the processes of the system by number. It is nil where there is
// no /proc.
func processes() map[int]*proc {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	all := make(map[int]*proc)
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p := lookAt(pid); p != nil { // else it has just ended
				all[pid] = p
			}
		}
	}
	return all
}

func lookAt(pid int) *proc {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	// The name before the state is in brackets and may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const startTime = 19 // field 22 of proc(5), counted from the state
	if len(fields) <= startTime {
		return nil
	}
	p := &proc{pid: pid, state: string(fields[0])}
	p.parent, _ = strconv.Atoi(string(fields[1]))
	p.group, _ = strconv.Atoi(string(fields[2]))
	p.started, _ = strconv.ParseUint(string(fields[startTime]), 10, 64)
	return p
}

// strays are the running processes that a command has started and that left its
// group: those that still have its mark in their environment, its descendants, and
// the descendants of all of these.
func strays(cmd *exec.Cmd) []*proc {
	all := processes()
	mark := markOf(cmd.Env)
	root := cmd.Process.Pid
	belongs := map[int]bool{root: true}
	for pid, p := range all {
		if p.group == root || mark != "" && pid != os.Getpid() && hasMark(pid, mark) {
			belongs[pid] = true
		}
	}
	var list []*proc
	for pid, p := range all {
		if p.group == root || !p.runs() {
			continue
		}
		above := pid
		for n := 0; above > 1 && !belongs[above] && n < len(all); n++ {
			if next := all[above]; next != nil {
				above = next.parent
			} else {
				above = 0
			}
		}
		if belongs[above] {
			list = append(list, p)
		}
	}
	return list
}

// hasMark reports whether a process has a variable in its environment. Those of
// other people cannot be looked at.
func hasMark(pid int, mark string) bool {
	f, err := os.Open(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxProcEnviron))
	return err == nil && bytes.Contains(append([]byte{0}, data...), []byte("\x00"+mark+"\x00"))
}

// signalStrays sends a signal to what left a command's group. A handle keeps it from
// reaching a process that has come to have the number since. The second round is for
// what was started during the first.
func signalStrays(cmd *exec.Cmd, signal syscall.Signal) {
	known := make(map[id]bool)
	for range 2 {
		signalEach(slices.DeleteFunc(strays(cmd), func(p *proc) bool { return known[p.id()] }), signal, known)
	}
}

func signalEach(list []*proc, signal syscall.Signal, known map[id]bool) {
	for _, p := range list {
		known[p.id()] = true
		handle, err := os.FindProcess(p.pid)
		if err != nil {
			continue
		}
		if now := lookAt(p.pid); now != nil && now.started == p.started {
			_ = handle.Signal(signal) // an error says that it is gone
		}
		_ = handle.Release()
	}
}

func straysAlive(cmd *exec.Cmd) bool { return len(strays(cmd)) > 0 }

// groupAlive reports whether a process of the group still runs. What has ended
// and waits for its parent does not count: in a container there may be nobody
// who would ever collect it.
func groupAlive(group int) bool {
	if syscall.Kill(-group, 0) == syscall.ESRCH {
		return false
	}
	all := processes()
	for _, p := range all {
		if p.group == group && p.runs() {
			return true
		}
	}
	return all == nil
}
