package llm

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
)

// picture is a picture whose left half is dark and whose right half is light.
func picture(w, h int) image.Image {
	p := image.NewPaletted(image.Rect(0, 0, w, h), color.Palette{color.Gray{20}, color.Gray{230}})
	for y := range h {
		for x := w / 2; x < w; x++ {
			p.SetColorIndex(x, y, 1)
		}
	}
	return p
}

func encoded(t *testing.T, format string, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	var err error
	switch p := picture(w, h); format {
	case "png":
		err = png.Encode(&b, p)
	case "jpeg":
		err = jpeg.Encode(&b, p, nil)
	case "gif":
		err = gif.Encode(&b, p, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// WebP files: 40x8 light gray pixels without losses, and one pixel with.
const (
	webpPicture = "UklGRhwAAABXRUJQVlA4TBAAAAAvJ8ABAChykYvc/wAAAAAA"
	webpLossy   = "UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA"
)

func unbase64(t *testing.T, text string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestScaled(t *testing.T) {
	for _, tt := range []struct {
		format       string
		w, h         int
		wantW, wantH int
		media        string
	}{
		{"png", 100, 50, 100, 50, "image/png"},
		{"png", 101, 50, 100, 49, "image/png"},
		{"png", 50, 101, 49, 100, "image/png"},
		{"png", 400, 300, 100, 75, "image/png"},
		{"png", 3000, 2, 100, 1, "image/png"},
		{"jpeg", 400, 200, 100, 50, "image/jpeg"},
		{"gif", 400, 200, 100, 50, "image/png"},
	} {
		img, err := NewImage("a", encoded(t, tt.format, tt.w, tt.h))
		if err != nil {
			t.Fatal(err)
		}
		small, err := img.Scaled(100)
		if err != nil {
			t.Errorf("%s %dx%d: %v", tt.format, tt.w, tt.h, err)
			continue
		}
		if small.Width != tt.wantW || small.Height != tt.wantH || small.MediaType != tt.media || small.Name != "a" {
			t.Errorf("%s %dx%d became %s %dx%d", tt.format, tt.w, tt.h, small.MediaType, small.Width, small.Height)
		}
		if same := small == img; same != (tt.w <= 100 && tt.h <= 100) || !same && small.Original != img {
			t.Errorf("%s %dx%d: the same %v, original %v", tt.format, tt.w, tt.h, same, small.Original)
		}
		again, err := img.Scaled(100)
		if err != nil || !bytes.Equal(again.Data, small.Data) {
			t.Errorf("%s: other bytes the second time, %v", tt.format, err)
		}
		if same, err := small.Scaled(100); same != small || err != nil {
			t.Errorf("%s: scaled once more, %v", tt.format, err)
		}
		checkHalves(t, small)
	}
}

func checkHalves(t *testing.T, img *Image) {
	t.Helper()
	p, _, err := image.Decode(bytes.NewReader(img.Data))
	if err != nil {
		t.Fatal(err)
	}
	gray := func(x int) uint8 { return color.GrayModel.Convert(p.At(x, img.Height/2)).(color.Gray).Y }
	if left, right := gray(img.Width/8), gray(img.Width*7/8); left > 40 || right < 210 {
		t.Errorf("%s: left %d, right %d", img.MediaType, left, right)
	}
}

// TestScaledKeepsTheOrientation: what a camera says about which side is up goes
// with a photo.
func TestScaledKeepsTheOrientation(t *testing.T) {
	segment := func(payload string) []byte {
		return append([]byte{0xff, 0xe1, 0, byte(len(payload) + 2)}, payload...)
	}
	exif := segment("Exif\x00\x00II*\x00\x08\x00\x00\x00\x00\x00")
	plain := encoded(t, "jpeg", 400, 200)
	jfif := []byte("\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00")
	for name, head := range map[string][]byte{
		"first": exif, "behind another": append(bytes.Clone(jfif), exif...), "none": nil,
		"not Exif": segment("http"), "a length beyond the end": []byte("\xff\xe1\xff\xffExif\x00\x00"),
		"a length of nothing": []byte("\xff\xe1\x00\x00Exif\x00\x00"),
	} {
		data := append(append([]byte("\xff\xd8"), head...), plain[2:]...)
		img, err := NewImage("a", data)
		if err != nil {
			t.Fatal(err)
		}
		if img.Width == 0 {
			img.Width, img.Height = 400, 200 // the header cannot be read
		}
		small, err := img.Scaled(100)
		if err != nil {
			continue // such a file cannot be decoded either
		}
		if kept := bytes.Contains(small.Data, exif); kept != bytes.Contains(head, exif) {
			t.Errorf("%s: kept %v", name, kept)
		}
		if _, err := jpeg.Decode(bytes.NewReader(small.Data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestScaledWebP: of a WebP something is made that every engine reads, whatever
// its size.
func TestScaledWebP(t *testing.T) {
	for _, c := range []struct {
		file                     string
		w, h, side, toldW, toldH int
		media                    string
	}{
		{webpPicture, 40, 8, 20, 20, 4, "image/png"},
		{webpPicture, 40, 8, 40, 40, 8, "image/png"},
		{webpLossy, 1, 1, 40, 1, 1, "image/jpeg"},
	} {
		img, err := NewImage("a", unbase64(t, c.file))
		if err != nil || img.Width != c.w || img.Height != c.h {
			t.Fatalf("%+v, %v", img, err)
		}
		small, err := img.Scaled(c.side)
		if err != nil || small.MediaType != c.media || small.Width != c.toldW || small.Height != c.toldH || small.Original != img {
			t.Errorf("%+v, %v", small, err)
		}
	}
}

// TestScaledRefuses: what cannot or must not be unpacked is an error.
func TestScaledRefuses(t *testing.T) {
	data := encoded(t, "png", 400, 200)
	broken, _ := NewImage("broken.png", data[:len(data)/2])
	bomb := &Image{Name: "bomb.png", MediaType: "image/png", Width: 100_001, Height: 1000, Data: data}
	odd := &Image{Name: "odd", MediaType: "image/tiff", Width: 2000, Height: 1000, Data: data}
	for _, img := range []*Image{broken, bomb, odd} {
		if small, err := img.Scaled(100); err == nil {
			t.Errorf("%s became %+v", img.Name, small)
		}
	}
	unreadable := &Image{Name: "u", MediaType: "image/png"}
	if same, err := unreadable.Scaled(100); same != unreadable || err != nil {
		t.Errorf("an image of unknown size: %v", err)
	}
}

func BenchmarkScaled(b *testing.B) {
	var buf bytes.Buffer
	if err := jpeg.Encode(&buf, picture(4000, 3000), nil); err != nil {
		b.Fatal(err)
	}
	img, err := NewImage("a", buf.Bytes())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := img.Scaled(1456); err != nil {
			b.Fatal(err)
		}
	}
}

// An image that breaks off is told apart from a whole one, in every format.
func TestCheck(t *testing.T) {
	files := map[string][]byte{"lossless.webp": unbase64(t, webpPicture), "lossy.webp": unbase64(t, webpLossy)}
	for _, format := range []string{"png", "jpeg", "gif"} {
		files["sheep."+format] = encoded(t, format, 40, 30)
	}
	for name, data := range files {
		whole, err := NewImage(name, data)
		if err != nil {
			t.Fatal(err)
		}
		if err := whole.Check(); err != nil {
			t.Errorf("whole: %v", err)
		}
		for _, n := range []int{len(data) / 2, len(data) * 3 / 4, 12} {
			cut, err := NewImage(name, data[:n])
			if err != nil {
				t.Fatal(err)
			}
			if err := cut.Check(); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s, %d of %d bytes: %v", name, n, len(data), err)
			}
		}
	}
	huge := &Image{MediaType: "image/png", Width: 1 << 20, Height: 1 << 20}
	if err := huge.Check(); err != nil {
		t.Errorf("an image that is too large to be unpacked: %v", err)
	}
}
