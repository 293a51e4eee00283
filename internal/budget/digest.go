package budget

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"

	"github.com/drover-dev/drover/internal/llm"
)

// digest is a checksum of 64 bits over strings, fast because every step of every
// turn needs it. It tells apart requests of one session; it is no defence
// against an enemy, who would gain nothing.
type digest uint64

const (
	digestSeed  digest = 0x9e3779b97f4a7c15
	digestPrime digest = 0x2545f4914f6cdd1d // odd, so multiplying loses nothing
)

func (d digest) mix(v uint64) digest {
	d = (d ^ digest(v)) * digestPrime
	return digest(bits.RotateLeft64(uint64(d), 29))
}

// add mixes in a string and its length.
func (d digest) add(s string) digest {
	d = d.mix(uint64(len(s)))
	for ; len(s) >= 8; s = s[8:] {
		d = d.mix(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
	}
	var tail uint64
	for i := range len(s) {
		tail = tail<<8 | uint64(s[i])
	}
	return d.mix(tail)
}

// digestOf is a checksum of everything that the turn puts into a request.
func (p *pricer) digestOf(m *llm.Message, text string) uint64 {
	d := digestSeed.add(string(m.Role)).add(m.CallID).add(text)
	for i := range m.Calls {
		d = d.add(m.Calls[i].ID).add(m.Calls[i].Name).add(m.Calls[i].Arguments).add(string(m.Calls[i].Extra))
	}
	for _, img := range m.Images() {
		d = d.add(img.SHA256)
	}
	if p.replays(m) {
		d = d.add(m.Reasoning.Text).add(string(m.Reasoning.Details))
	}
	return uint64(d)
}

// headDigest is the hex SHA-256 of the system turn and the tools.
func headDigest(system string, tools []llm.ToolDef) string {
	h := sha256.New()
	write := func(s string) {
		var n [8]byte
		binary.LittleEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	write(system)
	for i := range tools {
		write(tools[i].Wire)
	}
	return hex.EncodeToString(h.Sum(nil))
}
