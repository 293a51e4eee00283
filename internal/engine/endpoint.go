package engine

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// Endpoint is the root of an engine's API: an origin and perhaps a path prefix.
// It is comparable. The zero Endpoint is none. Make one with [ParseEndpoint].
type Endpoint struct {
	scheme string // http or https
	host   string // lower case, IPv6 without brackets
	port   uint16
	prefix string // escaped, empty or beginning with a slash, not ending with one
}

// ParseEndpoint reads the address of an engine as people write it. Scheme and
// host are needed; a path is a prefix of the API. Trailing slashes and a trailing
// "/v1" are dropped, since every request path has its own. User information, a
// query and a fragment are refused: a key has a place of its own. Errors do not
// repeat the address, which may hold a secret.
func ParseEndpoint(s string) (Endpoint, error) {
	s = strings.TrimSpace(s)
	switch scheme, _, ok := strings.Cut(s, "://"); {
	case !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https"):
		return Endpoint{}, errors.New("engine address: want http://HOST[:PORT] or https://HOST[:PORT]")
	case strings.ContainsAny(s, "?#"):
		return Endpoint{}, errors.New("engine address: a query or fragment is not allowed")
	}
	u, err := url.Parse(s)
	if err != nil {
		return Endpoint{}, errors.New("engine address: not a URL")
	}
	if u.User != nil || strings.Contains(u.Host, "@") {
		return Endpoint{}, errors.New("engine address: user information is not allowed, set the key instead")
	}
	e := Endpoint{scheme: strings.ToLower(u.Scheme), host: strings.ToLower(u.Hostname())}
	if !validHost(e.host) {
		return Endpoint{}, errors.New("engine address: no valid host")
	}
	if e.port, err = parsePort(u.Port(), e.scheme); err != nil {
		return Endpoint{}, err
	}
	if e.prefix, err = normalPrefix(u.EscapedPath()); err != nil {
		return Endpoint{}, err
	}
	return e, nil
}

// validHost refuses what cannot be looked up or would break a message apart, and
// what nobody sees, such as a space without width that was copied with a name.
func validHost(host string) bool {
	if host == "" || len(host) > 253 { // RFC 1035
		return false
	}
	if strings.ContainsFunc(host, func(r rune) bool { return r == ' ' || r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return !strings.ContainsFunc(host, func(r rune) bool {
		return strings.ContainsRune(`:%/\[]@<>"^{|}`+"`", r)
	})
}

func parsePort(s, scheme string) (uint16, error) {
	if s == "" {
		if scheme == "https" {
			return 443, nil
		}
		return 80, nil
	}
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 {
		return 0, errors.New("engine address: the port is not between 1 and 65535")
	}
	return uint16(n), nil
}

// normalPrefix drops slashes at the end and the version. It does so until
// nothing is left to drop, so that an address that was normalised before does
// not change.
func normalPrefix(path string) (string, error) {
	for {
		trimmed := strings.TrimSuffix(strings.TrimRight(path, "/"), "/v1")
		if trimmed == path {
			break
		}
		path = trimmed
	}
	for segment := range strings.SplitSeq(path, "/") {
		if name, err := url.PathUnescape(segment); err != nil || name == "." || name == ".." {
			return "", errors.New("engine address: the path may not go up or stay in place")
		}
	}
	return path, nil
}

// IsZero reports whether there is no endpoint.
func (e Endpoint) IsZero() bool { return e == Endpoint{} }

// Root is the URL that the paths of requests are appended to. It is for
// requests and configuration files; messages use [Endpoint.String].
func (e Endpoint) Root() string {
	if e.IsZero() {
		return ""
	}
	host := e.host
	if strings.Contains(host, ":") {
		host = "[" + strings.ReplaceAll(host, "%", "%25") + "]"
	}
	if (e.scheme == "http" && e.port != 80) || (e.scheme == "https" && e.port != 443) {
		host += ":" + strconv.Itoa(int(e.port))
	}
	return e.scheme + "://" + host + e.prefix
}

// String is how messages name the endpoint: host and port, or local:PORT on the
// own machine.
func (e Endpoint) String() string {
	switch {
	case e.IsZero():
		return "no endpoint"
	case e.IsLoopback():
		return fmt.Sprintf("local:%d", e.port)
	}
	return net.JoinHostPort(e.host, strconv.Itoa(int(e.port)))
}

// Origin is scheme, host and port in normal form.
func (e Endpoint) Origin() string {
	return e.scheme + "://" + net.JoinHostPort(e.host, strconv.Itoa(int(e.port)))
}

// Port is the port, the scheme's own when the address had none.
func (e Endpoint) Port() int { return int(e.port) }

// WithPort is the same endpoint at another port.
func (e Endpoint) WithPort(port uint16) Endpoint {
	e.port = port
	return e
}

// sameOrigin reports whether a URL has the endpoint's origin.
func (e Endpoint) sameOrigin(u *url.URL) bool {
	port, err := parsePort(u.Port(), u.Scheme)
	return err == nil && u.Scheme == e.scheme && strings.ToLower(u.Hostname()) == e.host && port == e.port
}

// IsLoopback reports whether the endpoint is on this machine. The name localhost
// counts whatever a resolver says, because it is never given to one. So does the
// unspecified address, which engines print as the one they listen on.
func (e Endpoint) IsLoopback() bool {
	if e.isLocalhost() {
		return true
	}
	addr, err := netip.ParseAddr(e.host)
	return err == nil && (addr.Unmap().IsLoopback() || addr.Unmap().IsUnspecified())
}

// isLocalhost reports whether the host is localhost or a name below it, which
// are loopback by RFC 6761.
func (e Endpoint) isLocalhost() bool {
	host := strings.TrimSuffix(e.host, ".")
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// reach says how far a connection to the endpoint goes.
type reach uint8

const (
	reachPublic  reach = iota
	reachName          // a name that private networks use: its address decides
	reachPrivate       // a private or link-local address
	reachLocal         // this machine
)

// privateSuffixes are the top-level names that belong to private networks: RFC
// 6762, ICANN's reservation of 2024, RFC 8375, and the habit of home routers.
var privateSuffixes = [...]string{".local", ".internal", ".home.arpa", ".lan"}

func (e Endpoint) reach() reach {
	if e.IsLoopback() {
		return reachLocal
	}
	if addr, err := netip.ParseAddr(e.host); err == nil {
		if privateAddr(addr) {
			return reachPrivate
		}
		return reachPublic
	}
	host := strings.TrimSuffix(e.host, ".")
	if !strings.Contains(host, ".") {
		return reachName
	}
	for _, suffix := range privateSuffixes {
		if strings.HasSuffix(host, suffix) {
			return reachName
		}
	}
	return reachPublic
}

func privateAddr(addr netip.Addr) bool {
	addr = addr.Unmap()
	return addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast()
}
