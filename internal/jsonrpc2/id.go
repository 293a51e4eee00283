package jsonrpc2

import (
	"math"
	"strconv"
)

// ID is the id of a request exactly as the peer wrote it: a JSON string, number
// or null, kept as its lexeme. The zero ID is the absent id of a notification.
type ID struct{ lexeme string }

// IsZero reports whether there is no id. The id null is an id.
func (id ID) IsZero() bool { return id.lexeme == "" }

// String returns the lexeme, "" for the zero ID.
func (id ID) String() string { return id.lexeme }

// MarshalJSON returns the lexeme, null for the zero ID.
func (id ID) MarshalJSON() ([]byte, error) {
	if id.IsZero() {
		return []byte("null"), nil
	}
	return []byte(id.lexeme), nil
}

// key identifies the id for comparison. Peers that keep numbers as floats or
// escape strings differently on the second writing still name the same request:
// 1, 1.0 and 1e0 are one key, the string "1" is another.
func (id ID) key() string { return idKey([]byte(id.lexeme)) }

func idKey(lexeme []byte) string {
	switch {
	case len(lexeme) == 0:
		return ""
	case lexeme[0] == '"':
		return `"` + unquote(lexeme)
	}
	if n, ok := integer(lexeme); ok {
		return strconv.FormatInt(n, 10)
	}
	return string(lexeme)
}

// integer reads a JSON number that is a whole number, in any notation. Beyond
// the integers a float holds exactly, only plain notation counts.
func integer(lexeme []byte) (int64, bool) {
	if n, err := strconv.ParseInt(string(lexeme), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(lexeme), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}
