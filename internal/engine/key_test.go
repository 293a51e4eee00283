package engine

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/engine/enginetest"
	"github.com/drover-dev/drover/internal/llm"
	"github.com/drover-dev/drover/internal/openai"
)

// hangingDial never connects.
func hangingDial(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A key that cannot be used fails before anything is dialled.
func TestUnusableKeys(t *testing.T) {
	tests := map[string]struct {
		address string
		opts    Options
		code    llm.Code // "" for a usable key
	}{
		"no key":              {"http://203.0.113.5/v1", Options{}, ""},
		"clear text":          {"http://203.0.113.5/v1", Options{Key: "sesame"}, llm.CodeInvalidCredential},
		"clear text to name":  {"http://llm.example.org", Options{Key: "sesame"}, llm.CodeInvalidCredential},
		"insecure":            {"http://203.0.113.5/v1", Options{Key: "sesame", Insecure: true}, ""},
		"encrypted":           {"https://203.0.113.5/v1", Options{Key: "sesame"}, ""},
		"loopback":            {"http://127.0.0.1:1", Options{Key: "sesame"}, ""},
		"private":             {"http://10.1.2.3", Options{Key: "sesame"}, ""},
		"private name":        {"http://nas.local", Options{Key: "sesame"}, ""},
		"blank":               {"http://203.0.113.5/v1", Options{Key: " \n"}, ""},
		"trimmed":             {"https://h.example", Options{Key: " sesame\n"}, ""},
		"line break":          {"https://h.example", Options{Key: "ses\name"}, llm.CodeInvalidCredential},
		"typographic quote":   {"https://h.example", Options{Key: "“sesame”"}, llm.CodeInvalidCredential},
		"delete":              {"https://h.example", Options{Key: "ses\x7fame"}, llm.CodeInvalidCredential},
		"not UTF-8":           {"https://h.example", Options{Key: "ses\xffame"}, llm.CodeInvalidCredential},
		"missing":             {"https://h.example", Options{KeyRequired: true, KeyHint: "set LAB_KEY"}, llm.CodeMissingCredential},
		"first and last char": {"https://h.example", Options{Key: "! ~"}, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dialled := 0
			test.opts.Dial = func(context.Context, string, string) (net.Conn, error) {
				dialled++
				return nil, &net.OpError{Op: "dial", Err: net.ErrClosed}
			}
			e := New("lab", mustParse(t, test.address), Custom, &test.opts)
			err := e.CheckKey()
			if llm.CodeOf(err) != test.code {
				t.Fatalf("%v", err)
			}
			r := collect(t, e, t.Context(), request("m", "hello"))
			if test.code == "" {
				checkError(t, r.err, llm.CodeTransport, "")
				return
			}
			checkError(t, r.err, test.code, err.Error())
			if dialled > 0 || strings.Contains(err.Error(), "sesame") {
				t.Errorf("dialled %d times: %v", dialled, err)
			}
			if test.code == llm.CodeInvalidCredential {
				_, err := e.Models(t.Context(), "lab")
				checkError(t, err, test.code, "")
				info, err := e.Describe(t.Context(), target("m"))
				if err != nil || len(info.Notes) != 1 || dialled > 0 {
					t.Errorf("%+v, %v, dialled %d times", info, err, dialled)
				}
			}
		})
	}
	e := New("lab", mustParse(t, "https://h.example"), Custom, &Options{KeyRequired: true, KeyHint: "set LAB_KEY", Name: "Lab"})
	checkError(t, e.CheckKey(), llm.CodeMissingCredential, "Lab needs an API key: set LAB_KEY")
}

// peer is a connection with an address.
type peer struct {
	net.Conn
	addr net.TCPAddr
}

func (p peer) RemoteAddr() net.Addr { return &p.addr }

// A name of a private network may stand for any address: the address decides,
// before the key is sent.
func TestKeyToNameOfPrivateNetwork(t *testing.T) {
	for address, want := range map[string]llm.Code{"192.168.1.9": "", "127.0.0.1": "", "203.0.113.5": llm.CodeInvalidCredential} {
		srv := enginetest.New(t, &enginetest.Options{Key: "sesame", InMemory: true})
		e := New("lab", mustParse(t, "http://nas.local:8000"), Custom, &Options{Key: "sesame",
			Dial: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := srv.Dial(ctx, network, addr)
				return peer{conn, net.TCPAddr{IP: net.ParseIP(address), Port: 8000}}, err
			}})
		t.Cleanup(e.Close)
		_, err := e.Models(t.Context(), "lab")
		if llm.CodeOf(err) != want {
			t.Errorf("%s: %v", address, err)
		}
		if want != "" && len(srv.Requests()) > 0 {
			t.Errorf("%s got %v", address, srv.Requests())
		}
	}
}

func TestKeyIsSentAndHidden(t *testing.T) {
	e, srv := start(t, &enginetest.Options{Key: "sesame"}, Custom, &Options{Key: "  sesame\n"})
	if _, err := e.Models(t.Context(), "lab"); err != nil {
		t.Error(err)
	}
	if r := collect(t, e, t.Context(), request("m", "hello")); r.text != "ok" {
		t.Errorf("%+v", r)
	}
	srv.Fault("", enginetest.Refuse(401, "the key sesame is not known", "authentication_error"))
	r := collect(t, e, t.Context(), request("m", "hello"))
	checkError(t, r.err, llm.CodeAuth, "[key]")
	srv.Heal()
	srv.Script(enginetest.Answer{Raw: "data: {\"error\":{\"message\":\"bad key sesame\",\"code\":401}}\n\n"})
	r = collect(t, e, t.Context(), request("m", "hello"))
	checkError(t, r.err, llm.CodeAuth, "[key]")
	if strings.Contains(r.err.Message, "sesame") {
		t.Error(r.err)
	}

	// Wherever a message is cut, nothing of the key is left in it.
	for pad := range len("sesame") + 10 {
		text := strings.Repeat("x", openai.MaxMessageRunes-len("sesame...")-5+pad) + " sesame and the rest of the story"
		srv.Fault("", enginetest.Refuse(401, text, "authentication_error"))
		if r := collect(t, e, t.Context(), request("m", "hello")); strings.Contains(r.err.Message, "sesa") {
			t.Errorf("padding %d: %s", pad, r.err.Message[480:])
		}
	}
	srv.Heal()

	// A request to any other address of the engine would go without the key.
	for address, want := range map[string]string{e.saved.Root(): "Bearer sesame", "http://127.0.0.1:1": "", "http://llm.example.org": ""} {
		req, err := e.newRequest(t.Context(), mustParse(t, address), http.MethodPost, "/v1/chat/completions", nil)
		if err != nil || req.Header.Get("Authorization") != want {
			t.Errorf("%s: %v, %v", address, req, err)
		}
	}

	wrong := New("lab", e.saved, Custom, &Options{Key: "other", Limits: e.opts.Limits})
	t.Cleanup(wrong.Close)
	_, err := wrong.Models(t.Context(), "lab")
	checkError(t, err, llm.CodeAuth, "401: the key is not accepted")
	none := New("lab", e.saved, Custom, &Options{Limits: e.opts.Limits})
	t.Cleanup(none.Close)
	_, err = none.Models(t.Context(), "lab")
	checkError(t, err, llm.CodeAuth, "401: needs a key")
}
