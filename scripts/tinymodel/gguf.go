package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// The numbers of the GGUF format, version 3.
const (
	ggufMagic   = "GGUF"
	ggufVersion = 3
	// ggufAlign is where tensors start, in bytes; the format's default.
	ggufAlign = 32
)

// A valueKind is GGUF's number for the type of a metadata value.
type valueKind uint32

const (
	kindUint8 valueKind = iota
	kindInt8
	kindUint16
	kindInt16
	kindUint32
	kindInt32
	kindFloat32
	kindBool
	kindString
	kindArray
	kindUint64
	kindInt64
	kindFloat64
)

// A tensorKind is GGUF's number for how a tensor's numbers are stored.
type tensorKind uint32

const (
	float32s tensorKind = 0
	// float16s halves the size. Small whole numbers are stored exactly.
	float16s tensorKind = 1
)

func (k tensorKind) size() uint64 {
	if k == float16s {
		return 2
	}
	return 4
}

// An entry is one metadata key with its value: a number, bool or string, or a slice of these.
type entry struct {
	key   string
	value any
}

// A tensor is a named array. The first dimension is the one whose elements are adjacent.
type tensor struct {
	name string
	kind tensorKind
	dims []uint64
	data []float32
}

// A model is what one GGUF file holds.
type model struct {
	meta    []entry
	tensors []tensor
}

func (m *model) set(key string, value any) { m.meta = append(m.meta, entry{key, value}) }

// add appends a tensor. Whether the dimensions fit the data is checked on writing.
func (m *model) add(name string, kind tensorKind, data []float32, dims ...int) {
	t := tensor{name: name, kind: kind, data: data}
	for _, d := range dims {
		t.dims = append(t.dims, uint64(d))
	}
	m.tensors = append(m.tensors, t)
}

// write encodes the model. Equal models give equal bytes.
func (m *model) write(out io.Writer) error {
	e := &encoder{out: bufio.NewWriterSize(out, 1<<20)}
	e.bytes([]byte(ggufMagic))
	e.number(uint32(ggufVersion))
	e.number(uint64(len(m.tensors)))
	e.number(uint64(len(m.meta)))
	for _, kv := range m.meta {
		e.text(kv.key)
		if err := e.value(kv.value); err != nil {
			return fmt.Errorf("write gguf: %s: %w", kv.key, err)
		}
	}
	offset := uint64(0)
	for _, t := range m.tensors {
		elements := uint64(1)
		for _, d := range t.dims {
			elements *= d
		}
		if elements != uint64(len(t.data)) {
			return fmt.Errorf("write gguf: tensor %s: %d values for dimensions %v", t.name, len(t.data), t.dims)
		}
		e.text(t.name)
		e.number(uint32(len(t.dims)))
		e.number(t.dims)
		e.number(uint32(t.kind))
		e.number(offset)
		offset += (elements*t.kind.size() + ggufAlign - 1) / ggufAlign * ggufAlign
	}
	e.align()
	for _, t := range m.tensors {
		e.tensor(t)
		e.align()
	}
	if e.err == nil {
		e.err = e.out.Flush()
	}
	if e.err != nil {
		return fmt.Errorf("write gguf: %w", e.err)
	}
	return nil
}

// An encoder writes little-endian values and keeps the first error.
type encoder struct {
	out     *bufio.Writer
	written int64
	err     error
}

func (e *encoder) bytes(b []byte) {
	if e.err == nil {
		_, e.err = e.out.Write(b)
		e.written += int64(len(b))
	}
}

// number writes a number, a bool or a slice of numbers; other types are an error.
func (e *encoder) number(v any) {
	if e.err == nil {
		e.err = binary.Write(e.out, binary.LittleEndian, v)
		e.written += int64(binary.Size(v))
	}
}

func (e *encoder) text(s string) {
	e.number(uint64(len(s)))
	e.bytes([]byte(s))
}

func (e *encoder) align() {
	if rest := e.written % ggufAlign; rest != 0 {
		e.bytes(make([]byte, ggufAlign-rest))
	}
}

// value writes a metadata value with its type. Only the types that models need are known.
func (e *encoder) value(v any) error {
	scalar := func(kind valueKind) { e.number(uint32(kind)); e.number(v) }
	array := func(kind valueKind, n int) {
		e.number(uint32(kindArray))
		e.number(uint32(kind))
		e.number(uint64(n))
	}
	switch v := v.(type) {
	case uint32:
		scalar(kindUint32)
	case int32:
		scalar(kindInt32)
	case float32:
		scalar(kindFloat32)
	case bool:
		scalar(kindBool)
	case string:
		e.number(uint32(kindString))
		e.text(v)
	case []string:
		array(kindString, len(v))
		for _, s := range v {
			e.text(s)
		}
	case []int32:
		array(kindInt32, len(v))
		e.number(v)
	case []float32:
		array(kindFloat32, len(v))
		e.number(v)
	default:
		return fmt.Errorf("no encoding for %T", v)
	}
	return nil
}

func (e *encoder) tensor(t tensor) {
	size := int(t.kind.size())
	raw := make([]byte, size*len(t.data))
	for i, f := range t.data {
		if t.kind == float16s {
			binary.LittleEndian.PutUint16(raw[size*i:], toHalf(f))
		} else {
			binary.LittleEndian.PutUint32(raw[size*i:], math.Float32bits(f))
		}
	}
	e.bytes(raw)
}

// Bounds on what is read, far above any real vocabulary, so that a broken file
// is an error instead of an allocation of all memory.
const (
	maxEntries = 1 << 16
	maxArray   = 1 << 22
	maxText    = 1 << 20
	maxDims    = 4
)

var errTooLarge = errors.New("size out of bounds")

// readModel decodes the metadata of a GGUF file and the names, kinds and
// dimensions of its tensors. The tensors' data is not read.
func readModel(in io.Reader) (*model, error) {
	d := &decoder{in: bufio.NewReaderSize(in, 1<<20)}
	if magic := string(d.bytes(uint64(len(ggufMagic)))); d.err == nil && magic != ggufMagic {
		return nil, fmt.Errorf("read gguf: magic %q", magic)
	}
	if version := read[uint32](d); d.err == nil && version != 2 && version != ggufVersion {
		return nil, fmt.Errorf("read gguf: version %d", version)
	}
	tensors, entries := read[uint64](d), read[uint64](d)
	if tensors > maxEntries || entries > maxEntries {
		return nil, fmt.Errorf("read gguf: %d tensors, %d entries: %w", tensors, entries, errTooLarge)
	}
	m := &model{}
	for range entries {
		key := d.text()
		value := d.value(valueKind(read[uint32](d)))
		if d.err != nil {
			return nil, fmt.Errorf("read gguf: entry %q: %w", key, d.err)
		}
		m.set(key, value)
	}
	for range tensors {
		t := tensor{name: d.text()}
		if dims := read[uint32](d); dims <= maxDims {
			t.dims = readSlice[uint64](d, uint64(dims)).([]uint64)
		} else if d.err == nil {
			d.err = errTooLarge
		}
		t.kind = tensorKind(read[uint32](d))
		read[uint64](d) // offset
		if d.err != nil {
			return nil, fmt.Errorf("read gguf: tensor %q: %w", t.name, d.err)
		}
		m.tensors = append(m.tensors, t)
	}
	if d.err != nil {
		return nil, fmt.Errorf("read gguf: %w", d.err)
	}
	return m, nil
}

// lookup returns the value of key when it is there and of type T.
func lookup[T any](m *model, key string) (T, error) {
	var none T
	for _, kv := range m.meta {
		if kv.key != key {
			continue
		}
		if v, ok := kv.value.(T); ok {
			return v, nil
		}
		return none, fmt.Errorf("%s is a %T, not a %T", key, kv.value, none)
	}
	return none, fmt.Errorf("%s is missing", key)
}

// A decoder reads little-endian values and keeps the first error. After an error it returns zeros.
type decoder struct {
	in  *bufio.Reader
	err error
}

func (d *decoder) bytes(n uint64) []byte {
	if d.err != nil {
		return nil
	}
	if n > maxText {
		d.err = errTooLarge
		return nil
	}
	b := make([]byte, n)
	_, d.err = io.ReadFull(d.in, b)
	return b
}

func (d *decoder) text() string { return string(d.bytes(read[uint64](d))) }

func read[T any](d *decoder) T {
	var v T
	if d.err == nil {
		d.err = binary.Read(d.in, binary.LittleEndian, &v)
	}
	return v
}

func readSlice[T any](d *decoder, n uint64) any {
	v := make([]T, n)
	if d.err == nil {
		d.err = binary.Read(d.in, binary.LittleEndian, v)
	}
	return v
}

func (d *decoder) value(kind valueKind) any {
	switch kind {
	case kindUint8:
		return read[uint8](d)
	case kindInt8:
		return read[int8](d)
	case kindUint16:
		return read[uint16](d)
	case kindInt16:
		return read[int16](d)
	case kindUint32:
		return read[uint32](d)
	case kindInt32:
		return read[int32](d)
	case kindFloat32:
		return read[float32](d)
	case kindBool:
		return read[bool](d)
	case kindString:
		return d.text()
	case kindUint64:
		return read[uint64](d)
	case kindInt64:
		return read[int64](d)
	case kindFloat64:
		return read[float64](d)
	case kindArray:
		return d.array(valueKind(read[uint32](d)), read[uint64](d))
	}
	if d.err == nil {
		d.err = fmt.Errorf("value of unknown kind %d", kind)
	}
	return nil
}

func (d *decoder) array(kind valueKind, n uint64) any {
	if n > maxArray && d.err == nil {
		d.err = errTooLarge
	}
	if d.err != nil {
		return nil
	}
	switch kind {
	case kindUint32:
		return readSlice[uint32](d, n)
	case kindInt32:
		return readSlice[int32](d, n)
	case kindFloat32:
		return readSlice[float32](d, n)
	case kindString:
		texts := make([]string, 0, min(n, 1<<12))
		for range n {
			if d.err != nil {
				break
			}
			texts = append(texts, d.text())
		}
		return texts
	}
	d.err = fmt.Errorf("array of unknown kind %d", kind)
	return nil
}

// toHalf rounds to the nearest number of 16 bits (IEEE 754 binary16), ties to even.
func toHalf(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits >> 16 & 0x8000)
	size := math.Float32frombits(bits &^ (1 << 31))
	switch {
	case f != f:
		return sign | 0x7e00
	case size >= 65520:
		return sign | 0x7c00 // infinity
	case size < 1.0/(1<<14):
		// Subnormal: a multiple of 2^-24.
		return sign | uint16(math.RoundToEven(float64(size)*(1<<24)))
	}
	// Rounding may carry into the exponent, which is what it should do.
	fraction := bits & (1<<31 - 1)
	rounded := fraction + 0xfff + fraction>>13&1
	return sign | uint16(rounded>>13-(127-15)<<10)
}
