package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// stillRuns tells whether there is a process that has not ended.
func stillRuns(pid string) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return false
	}
	// The name, in parentheses, comes before the state.
	state := strings.TrimSpace(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

func endProcess(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := os.FindProcess(n); err == nil {
		_ = p.Kill() // it may have ended by now
	}
}

// untilGone fails for what still runs after a while: what was killed with drover's
// last breath needs a moment to go.
func untilGone(t *testing.T, pids []string) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for _, pid := range pids {
		for stillRuns(pid) {
			if time.Now().After(deadline) {
				t.Errorf("process %s still runs", pid)
				endProcess(t, pid)
				break
			}
		}
	}
}
