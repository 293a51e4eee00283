package session

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
	"unicode"
)

// crockford is the alphabet of ULIDs in small letters: its order is the order of
// the values, and no letter looks like a digit.
const crockford = "0123456789abcdefghjkmnpqrstvwxyz"

// idLength is the number of characters of an id: 48 bits of milliseconds and 80
// random bits.
const idLength = 26

// newID makes an id that sorts by time.
func newID(now time.Time, random io.Reader) (string, error) {
	var b [16]byte
	ms := uint64(max(0, now.UnixMilli()))
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	if _, err := io.ReadFull(random, b[6:]); err != nil {
		return "", fmt.Errorf("session id: %w", err)
	}
	var id [idLength]byte
	// 26 digits of 5 bits are 130: the number starts with two bits of zero.
	for i := range id {
		v := 0
		for j := range 5 {
			v <<= 1
			if bit := i*5 + j - 2; bit >= 0 {
				v |= int(b[bit/8]>>(7-bit%8)) & 1
			}
		}
		id[i] = crockford[v]
	}
	return string(id[:]), nil
}

// cleanID checks that an id is safe as a file name.
func cleanID(id string) (string, error) {
	lower := strings.ToLower(id)
	if len(lower) != idLength || strings.Trim(lower, crockford) != "" {
		return "", fmt.Errorf("session %q: %w: an id has %d letters and digits", id, ErrNotFound, idLength)
	}
	return lower, nil
}

// maxBase bounds the readable part of a folder's name, in bytes.
const maxBase = 64

// folderOf names the folder of a working directory's sessions, the same for all
// paths that lead to it: an editor and a shell differ in what they call it.
func folderOf(cwd string) string {
	if real, err := filepath.EvalSymlinks(cwd); err == nil {
		cwd = real
	}
	return folderName(cwd)
}

// folderName is the name for one path.
func folderName(cwd string) string {
	sum := sha256.Sum256([]byte(cwd))
	base := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, filepath.Base(cwd))
	for len(base) > maxBase {
		base = base[:maxBase]
		base = strings.ToValidUTF8(base, "")
	}
	if base = strings.TrimRight(base, "."); base == "" || base == "_" {
		base = "root"
	}
	return hex.EncodeToString(sum[:6]) + "-" + base
}
