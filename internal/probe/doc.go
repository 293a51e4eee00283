// Package probe turns the metadata documents of one inference engine into what
// is proven about one of its models: tri-state capabilities and a context
// window, each with the claims that it rests on.
//
// The package is pure. An [Adapter] says which [Call]s to make, the caller makes
// them and hands the answers to [Resolve]. Rules that hold for every adapter:
//
//   - Only an answer with status 200 is evidence. A missing, malformed or absent
//     field makes that one field unknown and nothing else.
//   - Member names are matched with their exact case. Sizes are read from
//     positive finite numbers and from strings of digits, booleans only from
//     JSON booleans.
//   - Supported against unsupported is unknown, with both claims kept. A member
//     missing from a list is no claim, except where an engine documents the list
//     as complete.
//   - Parameters add up, lists of effort values are intersected, and of several
//     window sizes of one kind the smallest counts.
//   - A call holds the model's id and nothing else. No call generates text, loads
//     a model or wakes one.
package probe
