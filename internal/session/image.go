package session

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/drover-dev/drover/internal/llm"
)

// imageStore keeps the bytes of a session's images by their SHA-256.
type imageStore interface {
	put(sha string, data []byte) error
	get(sha string) ([]byte, error)
}

// imageFolder is the folder beside a log.
type imageFolder string

func (dir imageFolder) put(sha string, data []byte) error {
	path := filepath.Join(string(dir), sha)
	if old, err := dir.get(sha); err == nil && digest(old) == sha {
		return nil
	}
	if err := makeFolder(string(dir)); err != nil {
		return err
	}
	// A damaged file may be in the way, so this one replaces.
	temp, err := writeTemp(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		os.Remove(temp)
		return err
	}
	return syncFolder(string(dir))
}

func (dir imageFolder) get(sha string) ([]byte, error) {
	f, err := os.Open(filepath.Join(string(dir), sha))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, llm.MaxImageBytes+1))
	if err == nil && len(data) > llm.MaxImageBytes {
		err = fmt.Errorf("more than %d bytes", llm.MaxImageBytes)
	}
	return data, err
}

// imageMap is for logs in memory. Records are read while others are appended.
type imageMap struct{ bySHA sync.Map }

func (m *imageMap) put(sha string, data []byte) error {
	m.bySHA.Store(sha, data)
	return nil
}

func (m *imageMap) get(sha string) ([]byte, error) {
	if data, ok := m.bySHA.Load(sha); ok {
		return data.([]byte), nil
	}
	return nil, fs.ErrNotExist
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// isDigest reports whether text is a digest, and with that safe as a file name.
func isDigest(text string) bool {
	return len(text) == 2*sha256.Size && strings.Trim(text, "0123456789abcdef") == ""
}

// loadImage finds the image that a message refers to.
func loadImage(store imageStore, ref *llm.Image) (*llm.Image, error) {
	if len(ref.Data) > 0 {
		return ref, nil
	}
	if !isDigest(ref.SHA256) {
		return nil, errors.New("the reference is damaged")
	}
	data, err := store.get(ref.SHA256)
	if err != nil {
		return nil, err
	}
	if digest(data) != ref.SHA256 {
		return nil, errors.New("the file is damaged: its bytes are not those that were stored")
	}
	img, err := llm.NewImage(ref.Name, data)
	if err == nil {
		img.Original = ref.Original
	}
	return img, err
}
