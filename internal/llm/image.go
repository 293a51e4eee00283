package llm

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/webp"
)

// MaxImageBytes bounds one image: 20 MiB, the limit of the most generous hosted
// API, and what fits into a request with room to spare.
const MaxImageBytes = 20 << 20

const webpType = "image/webp"

// Image is a picture, encoded as it came. Build it with [NewImage].
type Image struct {
	Name      string // a file name or label for people and markers, may be empty
	MediaType string // image/png, image/jpeg, image/gif or image/webp
	Width     int    // pixels, 0 if the header cannot be read
	Height    int    // pixels, 0 if the header cannot be read
	SHA256    string // hex digest of Data
	Data      []byte
	// Original is the image that this one was made from, nil for one as it came;
	// see [Image.Scaled]. It is kept and never sent.
	Original *Image
}

// NewImage reads the format and the pixel size from the first bytes of the
// data. Of an image whose format is recognised but whose header is broken the
// size stays 0. The image keeps data.
func NewImage(name string, data []byte) (*Image, error) {
	if len(data) > MaxImageBytes {
		return nil, fmt.Errorf("image %s: %d bytes, more than %d", name, len(data), MaxImageBytes)
	}
	media, decode := imageFormat(data)
	if decode == nil {
		return nil, fmt.Errorf("image %s: not a PNG, JPEG, GIF or WebP file", name)
	}
	sum := sha256.Sum256(data)
	img := &Image{Name: name, MediaType: media, SHA256: hex.EncodeToString(sum[:]), Data: data}
	if cfg, err := decode(bytes.NewReader(data)); err == nil && cfg.Width > 0 && cfg.Height > 0 {
		img.Width, img.Height = cfg.Width, cfg.Height
	}
	return img, nil
}

// imageFormat tells the format by its magic bytes and gives its own config
// decoder, so that nothing depends on registration by import.
func imageFormat(data []byte) (media string, decode func(io.Reader) (image.Config, error)) {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png", png.DecodeConfig
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return "image/jpeg", jpeg.DecodeConfig
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return "image/gif", gif.DecodeConfig
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return webpType, webp.DecodeConfig
	}
	return "", nil
}
