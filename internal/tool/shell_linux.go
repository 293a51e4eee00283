package tool

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// groupAlive reports whether a process of the group still runs. What has ended
// and waits for its parent does not count: in a container there may be nobody
// who would ever collect it.
func groupAlive(group int) bool {
	if syscall.Kill(-group, 0) == syscall.ESRCH {
		return false
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return true
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has just ended
		}
		var state string
		var parent, of int
		// The name before the state is in brackets and may hold anything.
		fields := stat[bytes.LastIndexByte(stat, ')')+1:]
		if n, _ := fmt.Sscan(string(fields), &state, &parent, &of); n == 3 && of == group && state != "Z" && state != "X" {
			return true
		}
	}
	return false
}
