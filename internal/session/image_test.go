package session

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/drover-dev/drover/internal/llm"
)

func TestImageFiles(t *testing.T) {
	store := NewStore(fastDir(t))
	l, err := store.Create("/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	img := picture(t, 7)
	appendAll(t, l, l.NewState(), &UserMessage{Parts: []llm.Part{img}})
	l.Close()
	path := filepath.Join(string(imagesOf(l.path)), img.SHA256)
	whole, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(whole, img.Data) {
		t.Fatalf("the image's file: %v", err)
	}
	s, err := store.Read(l.ID())
	if err != nil || !reflect.DeepEqual(s.Messages[0].Images(), []*llm.Image{img}) {
		t.Errorf("the image comes back as %+v, %v", s.Messages, err)
	}

	for name, harm := range map[string]func() error{
		"damaged":   func() error { return os.WriteFile(path, whole[:len(whole)-1], 0o600) },
		"too large": func() error { return os.Truncate(path, llm.MaxImageBytes+1) },
		"removed":   func() error { return os.Remove(path) },
	} {
		os.WriteFile(path, whole, 0o600)
		if err := harm(); err != nil {
			t.Fatal(err)
		}
		s, err := store.Read(l.ID())
		if err != nil || short(s.Messages)[0] != "u([image w7.png is missing: its file could not be read])" || len(s.Warnings) == 0 {
			t.Errorf("%s: %v, %+v", name, err, s)
		}
		checks, err := store.Verify(l.ID())
		if err != nil || checks[0].OK() {
			t.Errorf("%s: verify sees nothing: %v", name, err)
		}
	}
	// Shown again, it is stored again.
	again, s, err := store.Open(l.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	appendAll(t, again, s, &UserMessage{Parts: []llm.Part{img}})
	if s, err = store.Read(l.ID()); err != nil || len(s.Warnings) > 0 {
		t.Errorf("%v, %v", err, s.Warnings)
	}
}

// A reference is data: it must not lead out of the folder.
func TestImageReferencesStayInTheFolder(t *testing.T) {
	dir := fastDir(t)
	img := picture(t, 7)
	if err := os.WriteFile(filepath.Join(dir, img.SHA256), img.Data, 0o600); err != nil {
		t.Fatal(err)
	}
	images := imageFolder(filepath.Join(dir, "x.files"))
	for _, sha := range []string{"../" + img.SHA256, "", strings.ToUpper(img.SHA256)} {
		if got, err := loadImage(images, &llm.Image{SHA256: sha}); err == nil {
			t.Errorf("%q gives %+v", sha, got)
		}
	}
}

// TestOriginals: the image that a smaller one was made from is stored beside it,
// once, and its reference comes back.
func TestOriginals(t *testing.T) {
	store := NewStore(fastDir(t))
	l, err := store.Create("/w", nil)
	if err != nil {
		t.Fatal(err)
	}
	original, small := picture(t, 9), *picture(t, 7)
	small.Original = original
	state := l.NewState()
	appendAll(t, l, state, &UserMessage{Parts: []llm.Part{&small}}, &UserMessage{Parts: []llm.Part{&small, original}})
	l.Close()
	folder := string(imagesOf(l.path))
	for _, img := range []*llm.Image{original, &small} {
		if data, err := os.ReadFile(filepath.Join(folder, img.SHA256)); err != nil || !bytes.Equal(data, img.Data) {
			t.Errorf("%s: %v", img.Name, err)
		}
	}
	attached := 0
	for rec, err := range store.Records(l.ID()) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := rec.(*Attachment); ok {
			attached++
		}
	}
	s, err := store.Read(l.ID())
	if err != nil || attached != 2 {
		t.Fatalf("%d attachments, %v", attached, err)
	}
	back := s.Messages[0].Images()[0]
	if back.SHA256 != small.SHA256 || back.Original == nil || back.Original.SHA256 != original.SHA256 || len(s.Warnings) > 0 {
		t.Errorf("the image comes back as %+v, %v", back, s.Warnings)
	}
	if s.Messages[1].Images()[1].Original != nil {
		t.Error("the original has an original")
	}
}
