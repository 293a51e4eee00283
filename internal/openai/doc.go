// Package openai encodes requests for, and decodes answers of, the Chat
// Completions dialect of the inference engines, without I/O: bytes in, values
// out. Package engine does the HTTP.
//
// Rules of the package:
//
//   - It is pure: no file, network, clock, log, environment or randomness. The
//     same input gives the same bytes and the same events, however a stream is
//     cut into reads.
//   - Member names are compared exactly. A member of the wrong type costs that
//     member, never the chunk that it stands in.
//   - What a model wrote is passed on as it wrote it. Nothing is repaired
//     silently beyond what [llm.RepairArguments] documents, and text that looks
//     like a tool call is never run.
//   - An answer is complete only when the engine said so. Everything else is
//     an error, after the text that did arrive.
//   - Nothing here looks inside a model's name.
package openai

// Limits on what an engine may send. They keep a broken or hostile engine from
// filling the memory; real answers stay far below.
const (
	// MaxLineBytes bounds one line of a stream, without its line ending: a
	// whole answer with an embedded picture fits.
	MaxLineBytes = 16 << 20
	// MaxResponseBytes bounds the body of one answer.
	MaxResponseBytes = 64 << 20
	// MaxErrorBytes is how much of an error's body is looked at.
	MaxErrorBytes = 64 << 10
	// MaxMessageRunes bounds the message of an error, in characters.
	MaxMessageRunes = 500
	// MaxCatalogueEntries is how many models of a list are kept.
	MaxCatalogueEntries = 1024
	// MaxModelIDBytes bounds the id of a model.
	MaxModelIDBytes = 512
)
