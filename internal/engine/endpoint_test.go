package engine

import (
	"net/url"
	"strings"
	"testing"
	"unicode"
)

func mustParse(tb testing.TB, s string) Endpoint {
	tb.Helper()
	ep, err := ParseEndpoint(s)
	if err != nil {
		tb.Fatalf("ParseEndpoint(%q): %v", s, err)
	}
	return ep
}

func TestParseEndpoint(t *testing.T) {
	for in, want := range map[string]string{
		"http://h.example:1234":          "http://h.example:1234",
		"http://h.example:1234/":         "http://h.example:1234",
		"http://h.example:1234/v1":       "http://h.example:1234",
		"http://h.example:1234/v1/":      "http://h.example:1234",
		"http://h.example:1234/v1//":     "http://h.example:1234",
		"http://h.example/x/v1":          "http://h.example/x",
		"http://h.example/x/":            "http://h.example/x",
		"http://h.example/v1/x":          "http://h.example/v1/x",
		"http://h.example/v1/v1":         "http://h.example",
		"http://h.example/xv1":           "http://h.example/xv1",
		"http://h.example/V1":            "http://h.example/V1",
		"http://h.example/a%2Fb":         "http://h.example/a%2Fb",
		"HTTPS://H.Example:443/v1":       "https://h.example",
		"http://H.example:80":            "http://h.example",
		"http://h.example:":              "http://h.example",
		"https://h.example:80":           "https://h.example:80",
		" http://h.example\n":            "http://h.example",
		"http://[::1]:8080/v1":           "http://[::1]:8080",
		"http://[fe80::1%25eth0]:8080":   "http://[fe80::1%25eth0]:8080",
		"http://127.0.0.1:11434":         "http://127.0.0.1:11434",
		"http://bücher.example":          "http://bücher.example",
		"https://gw.example/v1beta/open": "https://gw.example/v1beta/open",
	} {
		ep, err := ParseEndpoint(in)
		if err != nil || ep.Root() != want {
			t.Errorf("ParseEndpoint(%q) = %q, %v, want %q", in, ep.Root(), err, want)
		}
	}
	for _, in := range []string{
		"", "h.example", "h.example:1234", "localhost:11434", "ftp://h.example", "ws://h.example", "file:///etc/passwd", "unix:/run/x",
		"http://", "http:///v1", "http://:8080", "http:h.example", "//h.example",
		"http://u@h.example", "http://u:secret@h.example", "http://@h.example", "http://h.example?key=secret", "http://h.example/?",
		"http://h.example#x", "http://h.example/#", "http://h.example:0", "http://h.example:65536", "http://h.example:x",
		"http://h.example/../v1", "http://h.example/x/./y", "http://h.example/%2e%2e/v1", "http://h exa", "http://h.example/%zz",
		"http://" + strings.Repeat("a", 254), "http://h\u200b.example", "http://h\u202e.example", "http://h\u0085.example", "http://h\u00a0x",
		"http://[fe80::1%25a%20b]:8080", "http://h\xff.example",
	} {
		ep, err := ParseEndpoint(in)
		if err == nil || !ep.IsZero() {
			t.Errorf("ParseEndpoint(%q) = %q, want an error", in, ep.Root())
		} else if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "h.example") {
			t.Errorf("ParseEndpoint(%q): the error repeats the address: %v", in, err)
		}
	}
}

func TestEndpointNames(t *testing.T) {
	tests := []struct {
		in, name, origin string
		reach            reach
	}{
		{"http://127.0.0.1:11434/x", "local:11434", "http://127.0.0.1:11434", reachLocal},
		{"http://127.9.9.9", "local:80", "http://127.9.9.9:80", reachLocal},
		{"http://LOCALHOST:1234", "local:1234", "http://localhost:1234", reachLocal},
		{"http://box.localhost.:1234", "local:1234", "http://box.localhost.:1234", reachLocal},
		{"http://[::1]:8080", "local:8080", "http://[::1]:8080", reachLocal},
		{"http://[::ffff:127.0.0.1]:8080", "local:8080", "http://[::ffff:127.0.0.1]:8080", reachLocal},
		{"http://0.0.0.0:8000", "local:8000", "http://0.0.0.0:8000", reachLocal},
		{"http://192.168.1.5:8000/secret-path", "192.168.1.5:8000", "http://192.168.1.5:8000", reachPrivate},
		{"http://10.0.0.1", "10.0.0.1:80", "http://10.0.0.1:80", reachPrivate},
		{"http://172.31.0.1", "172.31.0.1:80", "http://172.31.0.1:80", reachPrivate},
		{"http://172.32.0.1", "172.32.0.1:80", "http://172.32.0.1:80", reachPublic},
		{"http://[fd00::1]:1", "[fd00::1]:1", "http://[fd00::1]:1", reachPrivate},
		{"http://169.254.1.1", "169.254.1.1:80", "http://169.254.1.1:80", reachPrivate},
		{"http://203.0.113.5/v1", "203.0.113.5:80", "http://203.0.113.5:80", reachPublic},
		{"https://llm.example.org/v1", "llm.example.org:443", "https://llm.example.org:443", reachPublic},
		{"http://localhost.example.org", "localhost.example.org:80", "http://localhost.example.org:80", reachPublic},
		{"http://nas:8000", "nas:8000", "http://nas:8000", reachName},
		{"http://nas.local:8000", "nas.local:8000", "http://nas.local:8000", reachName},
		{"http://nas.internal", "nas.internal:80", "http://nas.internal:80", reachName},
		{"http://nas.home.arpa", "nas.home.arpa:80", "http://nas.home.arpa:80", reachName},
		{"http://nas.lan", "nas.lan:80", "http://nas.lan:80", reachName},
		{"http://mylocal:8000", "mylocal:8000", "http://mylocal:8000", reachName},
	}
	for _, test := range tests {
		ep := mustParse(t, test.in)
		if ep.String() != test.name || ep.Origin() != test.origin || ep.reach() != test.reach {
			t.Errorf("%s: %s, %s, reach %d", test.in, ep, ep.Origin(), ep.reach())
		}
		if ep.IsLoopback() != (test.reach == reachLocal) {
			t.Errorf("%s: loopback %v", test.in, ep.IsLoopback())
		}
	}
	if (Endpoint{}).String() == "" || (Endpoint{}).Root() != "" {
		t.Error("the zero endpoint")
	}
}

func TestSameOrigin(t *testing.T) {
	ep := mustParse(t, "http://127.0.0.1:8080/x")
	for in, want := range map[string]bool{
		"http://127.0.0.1:8080/other": true, "HTTP://127.0.0.1:8080": true,
		"http://127.0.0.1:8081/x": false, "https://127.0.0.1:8080/x": false, "http://localhost:8080/x": false,
		"http://127.0.0.1/x": false, "ftp://127.0.0.1:8080": false, "/x": false,
	} {
		u, err := url.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		if u.Scheme = strings.ToLower(u.Scheme); ep.sameOrigin(u) != want {
			t.Errorf("sameOrigin(%s) = %v", in, !want)
		}
	}
	if u, _ := url.Parse("https://H.example"); !mustParse(t, "https://h.example:443").sameOrigin(u) {
		t.Error("the default port is not the same origin")
	}
}

func TestPresets(t *testing.T) {
	for preset, want := range map[Preset]string{
		OMLX: "http://127.0.0.1:8000", VMLX: "http://127.0.0.1:8000", Ollama: "http://127.0.0.1:11434",
		LMStudio: "http://127.0.0.1:1234", LlamaCpp: "http://127.0.0.1:8080", VLLM: "http://127.0.0.1:8000",
		SGLang: "http://127.0.0.1:30000",
	} {
		if ep, ok := preset.DefaultEndpoint(); !ok || ep.Root() != want {
			t.Errorf("%s: %s, %v", preset, ep.Root(), ok)
		}
	}
	if _, ok := Custom.DefaultEndpoint(); ok {
		t.Error("custom has a default address")
	}
	if p, err := ParsePreset(""); p != Custom || err != nil {
		t.Errorf("empty preset: %q, %v", p, err)
	}
	for _, p := range Presets() {
		if got, err := ParsePreset(string(p)); got != p || err != nil || p.Title() == "" {
			t.Errorf("%s: %q, %v", p, got, err)
		}
	}
	if _, err := ParsePreset("Ollama"); err == nil || !strings.Contains(err.Error(), "one of omlx, ") {
		t.Errorf("unknown preset: %v", err)
	}
}

func FuzzParseEndpoint(f *testing.F) {
	for _, s := range []string{"http://h:1/v1", "https://[::1]/x/v1//", "http://localhost", "http://h/%2e", "http://[fe80::1%25a%20b]:1", "http://h\u200b", "http://[fe80::1%25a]:1", "http://h//"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ep, err := ParseEndpoint(s)
		if err != nil {
			return
		}
		root := ep.Root()
		if again, err := ParseEndpoint(root); err != nil || again != ep {
			t.Fatalf("%q became %q, which became %q, %v", s, root, again.Root(), err)
		}
		u, err := url.Parse(root + "/v1/models/%2E%2E")
		if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" || !ep.sameOrigin(u) {
			t.Errorf("%q: root %q, %v", s, root, err)
		}
		if !strings.HasSuffix(u.EscapedPath(), "/v1/models/%2E%2E") {
			t.Errorf("%q: path %q", s, u.EscapedPath())
		}
		if strings.ContainsAny(ep.String(), "/@?# ") || strings.ContainsFunc(ep.String(), func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q is shown as %q", s, ep)
		}
	})
}
