package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
)

func sampleModel() *model {
	m := &model{}
	m.set("a.number", uint32(7))
	m.set("a.signed", int32(-7))
	m.set("a.float", float32(1.5))
	m.set("a.bool", true)
	m.set("a.text", "grüße")
	m.set("texts", []string{"", "two", "Ċ"})
	m.set("signed", []int32{1, -2})
	m.set("floats", []float32{0.5, -0.25})
	m.add("full", float32s, []float32{1, 2, 3, 4, 5, 6}, 3, 2)
	m.add("half", float16s, []float32{1, -20}, 2)
	return m
}

func encode(t *testing.T, m *model) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := m.write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestModelRoundTrip(t *testing.T) {
	m := sampleModel()
	raw := encode(t, m)
	got, err := readModel(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got.meta, m.meta) {
		t.Errorf("meta %v, want %v", got.meta, m.meta)
	}
	for i, want := range m.tensors {
		want.data = nil
		if !reflect.DeepEqual(got.tensors[i], want) {
			t.Errorf("tensor %v, want %v", got.tensors[i], want)
		}
	}
	// The data is at the end: 24 bytes and padding, 4 bytes and padding.
	data := raw[len(raw)-2*ggufAlign:]
	if v := math.Float32frombits(binary.LittleEndian.Uint32(data[4:])); v != 2 {
		t.Errorf("second value of the first tensor is %v", v)
	}
	if v := binary.LittleEndian.Uint16(data[ggufAlign+2:]); v != 0xcd00 {
		t.Errorf("second value of the second tensor is %#x", v)
	}
	if !bytes.Equal(raw, encode(t, sampleModel())) {
		t.Error("the same model gave other bytes")
	}
}

// TestReadModelCut cuts the header at every byte: always an error, never a panic.
func TestReadModelCut(t *testing.T) {
	raw := encode(t, sampleModel())
	header := len(raw) - 2*ggufAlign
	for n := range header - ggufAlign {
		if _, err := readModel(bytes.NewReader(raw[:n])); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}

func TestReadModelErrors(t *testing.T) {
	le := binary.LittleEndian
	head := func(version uint32, tensors, entries uint64) []byte {
		b := le.AppendUint32([]byte(ggufMagic), version)
		return le.AppendUint64(le.AppendUint64(b, tensors), entries)
	}
	text := func(b []byte, s string) []byte { return append(le.AppendUint64(b, uint64(len(s))), s...) }
	entry := func(kind valueKind) []byte { return le.AppendUint32(text(head(ggufVersion, 0, 1), "k"), uint32(kind)) }
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"magic":         {append([]byte("GGML"), make([]byte, 20)...), "magic"},
		"version":       {head(1, 0, 0), "version 1"},
		"entries":       {head(ggufVersion, 0, maxEntries+1), errTooLarge.Error()},
		"tensors":       {head(ggufVersion, maxEntries+1, 0), errTooLarge.Error()},
		"kind":          {entry(99), "unknown kind 99"},
		"text":          {le.AppendUint64(entry(kindString), maxText+1), errTooLarge.Error()},
		"array":         {le.AppendUint64(le.AppendUint32(entry(kindArray), uint32(kindInt32)), maxArray+1), errTooLarge.Error()},
		"array of what": {le.AppendUint64(le.AppendUint32(entry(kindArray), uint32(kindArray)), 1), "unknown kind 9"},
		"dimensions":    {le.AppendUint32(text(head(ggufVersion, 1, 0), "t"), maxDims+1), errTooLarge.Error()},
	} {
		if _, err := readModel(bytes.NewReader(c.raw)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestWriteErrors(t *testing.T) {
	m := &model{}
	m.set("complex", 1i)
	if err := m.write(io.Discard); err == nil || !strings.Contains(err.Error(), "complex") {
		t.Errorf("value: %v", err)
	}
	m = &model{}
	m.add("odd", float32s, []float32{1, 2, 3}, 2, 2)
	if err := m.write(io.Discard); err == nil || !strings.Contains(err.Error(), "odd") {
		t.Errorf("tensor: %v", err)
	}
	full := errors.New("disk full")
	r, w := io.Pipe()
	r.CloseWithError(full)
	if err := sampleModel().write(w); !errors.Is(err, full) {
		t.Errorf("writer: %v", err)
	}
}

func TestLookup(t *testing.T) {
	m := sampleModel()
	if v, err := lookup[string](m, "a.text"); v != "grüße" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
	if _, err := lookup[string](m, "a.number"); err == nil {
		t.Error("a number as text")
	}
	if _, err := lookup[string](m, "none"); err == nil {
		t.Error("a missing key")
	}
}

func TestToHalf(t *testing.T) {
	inf := float32(math.Inf(1))
	for in, want := range map[float32]uint16{
		0: 0, 1: 0x3c00, -2: 0xc000, 20: 0x4d00, 65504: 0x7bff, 65520: 0x7c00, inf: 0x7c00, -inf: 0xfc00,
		1.0 / (1 << 14): 0x0400, 1.0 / (1 << 24): 0x0001, 1.0 / (1 << 26): 0,
		1 + 1.0/2048: 0x3c00, 1 + 3.0/2048: 0x3c02, 2 - 1.0/4096: 0x4000,
	} {
		if got := toHalf(in); got != want {
			t.Errorf("toHalf(%v) = %#04x, want %#04x", in, got, want)
		}
	}
	if got := toHalf(float32(math.Copysign(0, -1))); got != 0x8000 {
		t.Errorf("negative zero is %#04x", got)
	}
	if got := toHalf(float32(math.NaN())); got&0x7c00 != 0x7c00 || got&0x3ff == 0 {
		t.Errorf("not a number is %#04x", got)
	}
	// All finite numbers of 16 bits survive.
	for bits := range uint16(0x7c00) {
		if got := toHalf(fromHalf(bits)); got != bits {
			t.Fatalf("toHalf(fromHalf(%#04x)) = %#04x", bits, got)
		}
	}
}

// fromHalf is the inverse of [toHalf] for finite numbers.
func fromHalf(bits uint16) float32 {
	exponent, fraction := int(bits>>10&0x1f), float64(bits&0x3ff)
	value := math.Ldexp(fraction, -24)
	if exponent > 0 {
		value = math.Ldexp(1024+fraction, exponent-25)
	}
	if bits&0x8000 != 0 {
		value = -value
	}
	return float32(value)
}

func FuzzReadModel(f *testing.F) {
	var b bytes.Buffer
	if err := sampleModel().write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, raw []byte) {
		if m, err := readModel(bytes.NewReader(raw)); (m == nil) == (err == nil) {
			t.Errorf("model %v, error %v", m, err)
		}
	})
}
