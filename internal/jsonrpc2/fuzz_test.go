package jsonrpc2

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// expectedAnswers counts, by way of encoding/json, the lines that need an answer
// and collects the ids of the requests among them.
func expectedAnswers(input string) (answers int, ids []string) {
	input = strings.TrimPrefix(input, "\uFEFF")
	for line := range strings.SplitSeq(input, "\n") {
		line = strings.Trim(line, " \t\r")
		if line == "" {
			continue
		}
		var m map[string]json.RawMessage
		if json.Unmarshal([]byte(line), &m) != nil || string(m["jsonrpc"]) != `"2.0"` {
			answers++
			continue
		}
		method, isCall := m["method"]
		id, hasID := m["id"]
		switch {
		case !isCall:
			if m["result"] == nil && m["error"] == nil {
				answers++
			}
		case hasID && (len(id) > MaxID || !utf8.Valid(id) || strings.ContainsRune("{[tf", rune(id[0]))):
			answers++
		case hasID:
			answers++
			ids = append(ids, string(id))
		case method[0] != '"':
			answers++
		}
	}
	return answers, ids
}

// FuzzConn gives any bytes to a connection: it must survive, answer each request
// once with its id, write only lines that are messages, and serve a request after.
func FuzzConn(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "\r\n\xff\n", "\uFEFF{}", "[]", `"x"`, "{broken", `{"a":"\\\""}`,
		`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":[1,{"b":"}"}]}}`,
		`{"jsonrpc":"2.0","id":"\u0061","method":"panic"}` + "\n" + `{"jsonrpc":"2.0","id":1.0,"method":7}`,
		`{"jsonrpc":"2.0","id":null,"method":"refuse"}` + "\r\n" + `{"jsonrpc":"2.0","method":"fail"}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1e0}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}` + "\n" + `{ "jsonrpc" : "2.0" , "result" : null }`,
		"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"\xff\",\"params\":\"\xff\"}",
		`{"jsonrpc":"2.0","id":{},"id":-1e5,"ID":[],"meth\u006fd":"echo","":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		in := string(input) + "\n" + `{"jsonrpc":"2.0","id":"the last","method":"nothing"}`
		out := converse(t, in, testHandler, nil)
		answers, ids := expectedAnswers(in)
		lines := strings.SplitAfter(out, "\n")
		lines = lines[:len(lines)-1] // behind the last line break
		if len(lines) != answers {
			t.Fatalf("%d answers, want %d:\n%s", len(lines), answers, out)
		}
		for _, line := range lines {
			if !utf8.ValidString(line) || !json.Valid([]byte(line)) {
				t.Fatalf("bad line %q", line)
			}
			// Answers come in order here, all being given on the read loop.
			if len(ids) > 0 && strings.HasPrefix(line, `{"jsonrpc":"2.0","id":`+ids[0]+`,"`) {
				ids = ids[1:]
			}
		}
		if len(ids) > 0 {
			t.Fatalf("no answer to %s:\n%s", ids[0], out)
		}
		if !strings.HasSuffix(out, `{"jsonrpc":"2.0","id":"the last","result":null}`+"\n") {
			t.Fatalf("the connection did not survive:\n%s", out)
		}
	})
}

// FuzzMembers compares the splitter with encoding/json.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1,"b":[{"c":"]}"}],"\"":null}`, `{ "\u0061\\" : -1e5 }`, `{"a":{},"a":"\\"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		object = bytes.TrimSpace(object)
		var want map[string]json.RawMessage
		if len(object) == 0 || object[0] != '{' || json.Unmarshal(object, &want) != nil {
			return
		}
		got := make(map[string]json.RawMessage)
		for name, value := range members(object) {
			got[name] = value
		}
		if len(got) != len(want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		for name, value := range want {
			if !bytes.Equal(got[name], value) {
				t.Fatalf("%q: got %q, want %q", name, got[name], value)
			}
		}
	})
}
