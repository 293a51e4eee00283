package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-dev/drover/internal/llm"
)

// maxKeyBytes bounds a key. Real ones are under 1 KiB.
const maxKeyBytes = 16 << 10

// KeySource resolves a reference to a key: [Credential], or what asks it within a
// limit.
type KeySource func(ref string) (string, error)

// Credential resolves a reference to a key: env:NAME, file:PATH, or keyring:NAME
// for a key of [Keys]. White space around the key is taken off. The error is a
// MISSING_CREDENTIAL or INVALID_CREDENTIAL that names the reference and never
// the key.
func Credential(ref string) (string, error) {
	key, _, err := resolve(ref)
	return key, err
}

// FindCredential says where the key of a reference is, without giving it. Its
// error is that of [Credential].
func FindCredential(ref string) (place string, err error) {
	_, place, err = resolve(ref)
	return place, err
}

func resolve(ref string) (key, place string, err error) {
	kind, name, _ := strings.Cut(ref, ":")
	switch kind {
	case "env":
		place, key = "the environment", os.Getenv(name)
		if strings.TrimSpace(key) == "" {
			return "", place, llm.Errorf(llm.CodeMissingCredential, "the environment variable %s is not set", name)
		}
	case "keyring":
		return FindDirs().Keys().get(name)
	case "file":
		place = "the file"
		if key, err = readKeyFile(name); err != nil {
			return "", place, err
		}
	default:
		return "", "", llm.Errorf(llm.CodeInvalidCredential, "%w", checkReference(ref))
	}
	key, err = CheckKey(ref, key)
	return key, place, err
}

// CheckKey takes the white space around a key off and refuses one that cannot
// stand in an HTTP header. from says where the key came from.
func CheckKey(from, key string) (string, error) {
	key = strings.TrimSpace(key)
	if key == "" {
		return "", llm.Errorf(llm.CodeMissingCredential, "the key from %s is empty", from)
	}
	if len(key) > maxKeyBytes {
		return "", llm.Errorf(llm.CodeInvalidCredential, "the key from %s has %d bytes, more than %d", from, len(key), maxKeyBytes)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", llm.Errorf(llm.CodeInvalidCredential, "the key from %s has characters that are no printable ASCII: it was probably not copied whole", from)
	}
	return key, nil
}

func readKeyFile(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", llm.Errorf(llm.CodeMissingCredential, "the key file %s: %w", path, err)
		}
		path = filepath.Join(home, rest)
	}
	data, more, err := readAtMost(path, maxKeyBytes)
	if err != nil {
		return "", llm.Errorf(llm.CodeMissingCredential, "the key file cannot be read: %w", err)
	}
	if more {
		return "", llm.Errorf(llm.CodeInvalidCredential, "the key file %s has more than %d bytes", path, maxKeyBytes)
	}
	return string(data), nil
}

// checkReference refuses a key that is no reference, without repeating it.
func checkReference(ref string) error {
	kind, name, ok := strings.Cut(ref, ":")
	if ok && name != "" && (kind == "env" || kind == "keyring" || kind == "file") {
		return nil
	}
	return fmt.Errorf("want env:NAME, keyring:NAME or file:PATH; a key itself does not belong in this file")
}
