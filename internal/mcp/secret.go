package mcp

import (
	"net/url"
	"slices"
	"strings"

	"github.com/drover-dev/drover/internal/tool"
)

// minSecret is the shortest value that is looked for: shorter ones ("1", "true")
// stand in many texts and hide nothing.
const minSecret = 6

// secretsOf makes what takes the secrets of a server's settings out of a message.
func secretsOf(spec *tool.ServerSpec) *strings.Replacer {
	var values []string
	for _, e := range spec.Env {
		_, value, _ := strings.Cut(e, "=")
		values = append(values, value)
	}
	for _, v := range spec.Headers {
		values = append(values, v)
		if _, rest, ok := strings.Cut(v, " "); ok { // Bearer KEY
			values = append(values, rest)
		}
	}
	if u, err := url.Parse(spec.URL); err == nil {
		for _, list := range u.Query() {
			values = append(values, list...)
		}
		if password, ok := u.User.Password(); ok {
			values = append(values, password)
		}
		values = append(values, u.RawQuery)
	}
	// Longer ones first: one may hold another.
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, v := range values {
		for _, form := range []string{v, url.QueryEscape(v)} {
			if len(form) >= minSecret {
				pairs = append(pairs, form, "[hidden]")
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

// maxMessage bounds what of a server's error reaches a person or a model, in
// bytes.
const maxMessage = 400

// message is a text of a server on one line, bounded and without secrets.
func (s *server) message(text string) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
	text = s.secrets.Replace(text)
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "..."
	}
	return text
}
