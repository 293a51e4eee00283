// Package acp serves the Agent Client Protocol to editors: sessions, prompts,
// updates, permissions, model options.
//
// [Serve] answers one client over a reader and a writer until the input ends.
// The protocol is version 1; a file of this package is one of its methods
// (session_new.go, prompt.go, set_config_option.go) or one concept.
//
// # Order
//
// The read loop of the connection looks at every message once, in arrival
// order, and only registers: a message that touches a session goes to the
// mailbox of its [conversation], which works it off in order. Two things happen
// in the read loop itself, under the lock of the conversation: a prompt is
// registered, and a cancel is given to every prompt registered so far. So a
// cancel in the same write as its prompt finds it, and a late one finds nothing.
// Turns run beside the mailbox, one after the other; a selection made meanwhile
// holds from the next step on.
//
// # Rules
//
//   - A session is one value with its own lock; the server's only map leads from
//     id to session. Nothing of one session is visible in another.
//   - The list of models is advice. It decides what is shown and which values
//     set_config_option takes, never where a request goes. A provider that fails
//     or hangs costs its own group, nothing else.
//   - A selection is kept in memory alone; the request header of the session log
//     is what a later session/load restores.
//   - Input is decoded leniently: a bad optional member costs itself, an unknown
//     variant of a union is named and left alone. Output is exactly the schema's,
//     lines stay under 1 MiB, and nothing is sent that the client's capabilities
//     do not ask for.
//   - An error has a code for programs and a sentence for people; see errorData.
package acp
