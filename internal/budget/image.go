package budget

import "github.com/drover-dev/drover/internal/llm"

// The price of an image, in tokens unless a name says pixels. It is the largest
// of what the measured vision families charge: tiles of a fixed price, patches
// of 16 pixels after scaling to at most 1,024, and patches of 28 pixels.
const (
	imageFrame     = 64
	imageFloor     = 3328
	patch16Pixels  = 16
	patch16Longest = 1024 // pixels a side, before scaling
	patch16Sides   = 64   // patches along the longest side after scaling
	patch28Pixels  = 28
	patch28Most    = 16384
	unreadMost     = imageFrame + patch28Most
	unreadLeast    = imageFrame + imageFloor
	unreadBytes    = 64 // bytes a token when the size is not known

	// mostPixels keeps the products below far from overflow; no format that is
	// read holds longer sides.
	mostPixels = 1 << 31
)

// EstimateImage estimates the tokens of an image. It is never 0.
func EstimateImage(img *llm.Image) int {
	if img.Width <= 0 || img.Height <= 0 {
		return min(unreadMost, max(unreadLeast, ceilDiv(len(img.Data), unreadBytes)))
	}
	w, h := min(img.Width, mostPixels), min(img.Height, mostPixels)
	cols, rows := ceilDiv(w, patch16Pixels), ceilDiv(h, patch16Pixels)
	if longest := max(w, h); longest > patch16Longest {
		cols, rows = ceilDiv(patch16Sides*w, longest), ceilDiv(patch16Sides*h, longest)
	}
	patches16 := cols*rows + rows // a row ends with a token of its own
	patches28 := min(patch28Most, ceilDiv(w, patch28Pixels)*ceilDiv(h, patch28Pixels))
	return imageFrame + max(imageFloor, patches16, patches28)
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }
