package engine

import "testing"

// TestEnginesOfAKindCanBeToldApart by the name that lists show.
func TestEnginesOfAKindCanBeToldApart(t *testing.T) {
	for route, want := range map[string]string{
		"llamacpp": "llama.cpp", "llamacpp-8000": "llama.cpp (llamacpp-8000)", "lab": "llama.cpp (lab)", "": "llama.cpp",
	} {
		e := New(route, loopback(8080), LlamaCpp, nil)
		if got := e.Info(route).Name; got != want {
			t.Errorf("route %q: %q, want %q", route, got, want)
		}
		e.Close()
	}
	e := New("lab", loopback(8080), LlamaCpp, &Options{Name: "The lab"})
	defer e.Close()
	if got := e.Info("lab").Name; got != "The lab" {
		t.Errorf("%q", got)
	}
}
