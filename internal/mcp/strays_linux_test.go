package mcp_test

import (
	"os"
	"testing"
	"time"

	"github.com/drover-dev/drover/internal/mcp"
	"github.com/drover-dev/drover/internal/tool"
)

// TestCloseEndsWhatLeftTheGroup: what a server has started is ended with it, also
// in a session of its own and without a parent.
func TestCloseEndsWhatLeftTheGroup(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const stray = `setsid sh -c 'echo $$ >> "$TEST_PID_FILE"; exec sleep 1000' >/dev/null 2>&1`
	for name, script := range map[string]string{
		"child": stray + ` &`, "orphan": `(` + stray + ` &);`,
		"deaf": `setsid sh -c 'trap "" TERM; echo $$ >> "$TEST_PID_FILE"; while :; do sleep 0.01; done' >/dev/null 2>&1 &`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := pidFile(t)
			// The server begins when the other one is there.
			script += ` while ! [ -s "$TEST_PID_FILE" ]; do sleep 0.01; done; unset TEST_PID_FILE; exec "$0" -test.run='^$'`
			h := connect(t, &mcp.Options{KillDelay: 50 * time.Millisecond}, tool.ServerSpec{
				Name: "parent", Command: "/bin/sh", Args: []string{"-c", script, self},
				Env: []string{"TEST_MCP_SERVER=good", "TEST_PID_FILE=" + file, "GORACE=atexit_sleep_ms=0"},
			})
			if r := call(t, h, "parent__echo", `{"n":1}`); r.Status != tool.StatusOK {
				t.Fatalf("%+v", r)
			}
			list := pids(t, file)
			if len(list) != 1 || !alive(list[0]) {
				t.Fatalf("%v", list)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			untilGone(t, list...)
		})
	}
}
