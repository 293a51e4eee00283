package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/zalando/go-keyring"

	"github.com/drover-dev/drover/internal/llm"
)

// keyringService is the name under which keys are stored in the system keyring.
const keyringService = "drover"

// keyringPlace names the system keyring to people.
const keyringPlace = "the system keyring"

// maxKeyName bounds the name of a stored key, in bytes.
const maxKeyName = 128

// Keys stores keys by name for the reference keyring:NAME: in the system
// keyring, else in a file of the configuration folder that this user alone can
// read. The file also lists the names in the keyring, which cannot be asked for
// them.
//
// A key in the file counts more than one in the keyring: it was put there when
// the keyring could not be used, and storing it in the keyring takes it out.
type Keys struct {
	file string // empty without a home
}

// Keys gives the stored keys of this user.
func (d Dirs) Keys() *Keys {
	if d.Config == "" {
		return &Keys{}
	}
	return &Keys{file: filepath.Join(d.Config, "keys.json")}
}

// File is the file of keys. It need not exist.
func (k *Keys) File() string { return k.file }

// keyFile is the form of the file.
type keyFile struct {
	Keyring []string          `json:"keyring,omitempty"` // names alone
	Keys    map[string]string `json:"keys,omitempty"`
}

// StoredKey says where a key is.
type StoredKey struct {
	Name  string
	Place string // for people
	// Problem says why the key cannot be used, nil if it can.
	Problem error
}

// CheckKeyName refuses names that cannot stand in a reference or a command line.
func CheckKeyName(name string) error {
	if name == "" || len(name) > maxKeyName || name[0] == '-' || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("the name of a key is up to %d letters, digits and punctuation marks without spaces, and begins with no dash", maxKeyName)
	}
	return nil
}

// Set stores a key and says where. Without a usable keyring note says why.
func (k *Keys) Set(name, key string) (place, note string, err error) {
	if err := CheckKeyName(name); err != nil {
		return "", "", llm.Errorf(llm.CodeInvalidCredential, "%w", err)
	}
	if key, err = CheckKey("the input", key); err != nil {
		return "", "", err
	}
	f, err := k.read()
	if err != nil {
		return "", "", err
	}
	keyringErr := keyring.Set(keyringService, name, key)
	if keyringErr == nil {
		note, err := k.noteInKeyring(f, name)
		return keyringPlace, note, err
	}
	if k.file == "" {
		return "", "", fmt.Errorf("the key cannot be stored: the system keyring cannot be used (%w), and %w", keyringErr, ErrNoHome)
	}
	if f.Keys == nil {
		f.Keys = make(map[string]string)
	}
	f.Keys[name] = key
	f.Keyring = slices.DeleteFunc(f.Keyring, func(n string) bool { return n == name })
	return k.file, fmt.Sprintf("the system keyring cannot be used: %v", keyringErr), k.write(f)
}

// noteInKeyring writes down that a key is in the keyring. Without that it is
// used all the same, unless the file has an older one.
func (k *Keys) noteInKeyring(f *keyFile, name string) (note string, err error) {
	_, older := f.Keys[name]
	if k.file == "" || !older && slices.Contains(f.Keyring, name) {
		return "", nil
	}
	delete(f.Keys, name)
	if !slices.Contains(f.Keyring, name) {
		f.Keyring = append(f.Keyring, name)
	}
	if err = k.write(f); err != nil && !older {
		return fmt.Sprintf("drover auth list will not know it: %v", err), nil
	}
	return "", err
}

// Remove takes a key out of everywhere. Its error is MISSING_CREDENTIAL when
// there was none.
func (k *Keys) Remove(name string) (places []string, err error) {
	f, err := k.read()
	if err != nil {
		return nil, err
	}
	_, inFile := f.Keys[name]
	listed := slices.Contains(f.Keyring, name)
	keyringErr := keyring.Delete(keyringService, name)
	switch {
	case keyringErr == nil:
		places = append(places, keyringPlace)
	case errors.Is(keyringErr, keyring.ErrNotFound):
	case listed:
		return nil, fmt.Errorf("the key %q is in the system keyring, which cannot be used: %w", name, keyringErr)
	}
	if inFile || listed {
		delete(f.Keys, name)
		f.Keyring = slices.DeleteFunc(f.Keyring, func(n string) bool { return n == name })
		if err := k.write(f); err != nil {
			return places, err
		}
	}
	if inFile {
		places = append(places, k.file)
	}
	if len(places) == 0 {
		return nil, k.missing(name)
	}
	return places, nil
}

// List gives the stored keys by name, and those of more names: the keyring may
// have keys that others have put there. Each is looked at.
func (k *Keys) List(more ...string) ([]StoredKey, error) {
	f, err := k.read()
	if err != nil {
		return nil, err
	}
	names := slices.Concat(f.Keyring, slices.Collect(maps.Keys(f.Keys)), more)
	slices.Sort(names)
	var list []StoredKey
	for _, name := range slices.Compact(names) {
		s := StoredKey{Name: name}
		_, s.Place, s.Problem = k.get(name)
		list = append(list, s)
	}
	return list, nil
}

// get finds a key and says where it is.
func (k *Keys) get(name string) (key, place string, err error) {
	f, err := k.read()
	if err != nil {
		return "", k.file, err
	}
	if key, ok := f.Keys[name]; ok {
		key, err = CheckKey(k.file, key)
		return key, k.file, err
	}
	key, err = keyring.Get(keyringService, name)
	switch {
	case errors.Is(err, keyring.ErrNotFound):
		return "", "", k.missing(name)
	case err != nil && slices.Contains(f.Keyring, name):
		return "", keyringPlace, llm.Errorf(llm.CodeMissingCredential, "the system keyring, where the key %q is, cannot be read: %w", name, err)
	case err != nil:
		return "", "", llm.Errorf(llm.CodeMissingCredential, "no key %q is stored (drover auth set %s does it), and the system keyring cannot be read: %w", name, name, err)
	}
	key, err = CheckKey(keyringPlace, key)
	return key, keyringPlace, err
}

func (k *Keys) missing(name string) error {
	return llm.Errorf(llm.CodeMissingCredential, "no key %q is stored: drover auth set %s does it", name, name)
}

// read reads the file. One that is not there has no keys.
func (k *Keys) read() (*keyFile, error) {
	f := &keyFile{}
	if k.file == "" {
		return f, nil
	}
	data, err := readBounded(k.file)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, llm.Errorf(llm.CodeMissingCredential, "the file of keys %s cannot be read: %s", k.file, plainPathError(err))
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	// The decoder's own error might repeat what it read.
	if err := dec.Decode(f); err != nil || dec.More() {
		return nil, llm.Errorf(llm.CodeInvalidCredential, "the file of keys %s is damaged: move it away and store the keys again with drover auth set", k.file)
	}
	return f, nil
}

// write replaces the file. It goes when there is nothing left to keep.
func (k *Keys) write(f *keyFile) error {
	if len(f.Keyring) == 0 && len(f.Keys) == 0 {
		if err := os.Remove(k.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the file of keys cannot be removed: %w", err)
		}
		return nil
	}
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	if err := replaceFile(k.file, append(data, '\n')); err != nil {
		return fmt.Errorf("the file of keys %s cannot be written: %w", k.file, err)
	}
	return nil
}

// Modes of what is written: for this user alone.
const (
	folderMode = 0o700
	fileMode   = 0o600
)

// replaceFile puts new content in the place of a file, as a whole or not at all,
// and makes its folder if need be. A symbolic link stays one.
func replaceFile(path string, data []byte) (err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // its mode is 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(dir)
}

// syncFolder makes changes of a folder's entries durable. Windows has no such
// call and does not need it.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
