// Package engine talks HTTP to inference engines that speak the OpenAI API:
// local ones, found by a preset or by looking at their usual ports, and others
// whose address is configured.
//
// An [Engine] is one [llm.Provider] and [llm.Describer]. Rules of the package:
//
//   - An API key goes to the origin it was configured for and nowhere else: not
//     to a guessed port, not through a redirect, not in clear text to a public
//     host.
//   - A handshake (list of models and metadata of one of them) ends within
//     [HandshakeLimit], whatever the engine does, and its answers are bounded.
//     Its failure leaves the engine usable with nothing known.
//   - Paths that only one vendor has are asked only when that vendor's preset is
//     chosen and the engine's own answer does not speak against it. Nothing that
//     loads, unloads or wakes a model is ever asked.
//   - Messages name host and port, never a path, a key or user information.
//   - Nothing is retried here and no environment is read: a proxy is what
//     [Options] say.
package engine
