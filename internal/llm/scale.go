package llm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/draw"
	"golang.org/x/image/webp"
)

const (
	// maxDecodedPixels bounds what is unpacked to make an image smaller: 100
	// megapixels are 400 MB. A file of a few kilobytes may claim any size.
	maxDecodedPixels = 100_000_000
	// scaledQuality is that of a scaled JPEG. Text in a photo stays readable.
	scaledQuality = 90
)

// Scaled gives the image at a size whose longer side has at most side pixels, in
// the same shape. An image that is not larger is given back as it is, unless it is
// a WebP: llama.cpp and what is built on it read none. Of an animation the first
// picture is taken. The result is a JPEG of what was stored with losses, else a PNG,
// and [Image.Original] leads back. The same image gives the same bytes.
func (img *Image) Scaled(side int) (*Image, error) {
	longer := max(img.Width, img.Height)
	if longer <= side && img.MediaType != webpType {
		return img, nil
	}
	if img.Width*img.Height > maxDecodedPixels {
		return nil, fmt.Errorf("image %s: %dx%d pixels are too many to make it smaller", img.Name, img.Width, img.Height)
	}
	src, err := img.decode()
	if err != nil {
		return nil, err
	}
	_, lossy := src.(*image.YCbCr)
	lossy = lossy || img.MediaType == "image/jpeg"
	if longer > side {
		w, h := max(1, img.Width*side/longer), max(1, img.Height*side/longer)
		dst := image.NewRGBA(image.Rect(0, 0, w, h))
		draw.CatmullRom.Scale(dst, dst.Rect, src, src.Bounds(), draw.Src, nil)
		src = dst
	}
	var data []byte
	var buf bytes.Buffer
	if lossy {
		if err := jpeg.Encode(&buf, src, &jpeg.Options{Quality: scaledQuality}); err != nil {
			return nil, fmt.Errorf("image %s: %w", img.Name, err)
		}
		data = withExif(buf.Bytes(), img.Data)
	} else {
		if err := png.Encode(&buf, src); err != nil {
			return nil, fmt.Errorf("image %s: %w", img.Name, err)
		}
		data = buf.Bytes()
	}
	scaled, err := NewImage(img.Name, data)
	if err != nil {
		return nil, err
	}
	scaled.Original = img
	return scaled, nil
}

// Check unpacks the whole image, and says what is wrong with it. One that is too
// large for that is taken to be in order.
func (img *Image) Check() error {
	if img.Width*img.Height > maxDecodedPixels {
		return nil
	}
	_, err := img.decode()
	return err
}

// decode unpacks the first picture.
func (img *Image) decode() (image.Image, error) {
	decode := pictureDecoder(img.MediaType)
	if decode == nil {
		return nil, fmt.Errorf("image %s: %s is of no format that can be read", img.Name, img.MediaType)
	}
	src, err := decode(bytes.NewReader(img.Data))
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", img.Name, err)
	}
	return src, nil
}

// pictureDecoder gives the decoder of a media type, nil if there is none.
func pictureDecoder(media string) func(io.Reader) (image.Image, error) {
	switch media {
	case "image/png":
		return png.Decode
	case "image/jpeg":
		return jpeg.Decode
	case "image/gif":
		return gif.Decode
	case webpType:
		return webp.Decode
	}
	return nil
}

// withExif puts the Exif segment of one JPEG into another: it says which side is
// up, and a photo must not lie on its side because it was made smaller.
func withExif(scaled, original []byte) []byte {
	const start, app1, scan = 2, 0xe1, 0xda
	for at := start; at+4 <= len(original) && original[at] == 0xff; {
		marker, size := original[at+1], int(binary.BigEndian.Uint16(original[at+2:]))
		end := at + 2 + size
		if marker == scan || size < 2 || end > len(original) {
			break
		}
		segment := original[at:end]
		if marker == app1 && bytes.HasPrefix(segment[4:], []byte("Exif\x00\x00")) {
			data := make([]byte, 0, len(scaled)+len(segment))
			data = append(data, scaled[:start]...)
			data = append(data, segment...)
			return append(data, scaled[start:]...)
		}
		at = end
	}
	return scaled
}
