// Package llm holds the values that the rest of drover passes around: messages
// and their parts, tools, targets, capabilities with their evidence, requests,
// stream events, usage, errors, and what a provider is.
//
// Rules of the package:
//
//   - It imports no other package of the module and is pure: no file, network,
//     clock, log, environment or randomness.
//   - Values are immutable by agreement. Whoever builds one owns it until it is
//     handed on; afterwards nobody changes it, and whoever needs a different one
//     makes a copy. Slices inside a value belong to the value.
//   - The zero value of an enumeration means something: [Unknown] support,
//     the [Fallback] window, the [Generic] profile, no target selected.
//   - Nothing here looks inside a model's name.
package llm
