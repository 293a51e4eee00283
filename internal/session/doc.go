// Package session keeps the durable log of a conversation and folds it back to
// the state that a conversation goes on from.
//
// # The file
//
// A session is one append-only file of JSON lines: a header,
//
//	{"type":"header","version":1,"id":"01k…","cwd":"/home/ann/site","created":"…"}
//
// then records, each {"seq":n,"time":…,"type":…,"data":{…}} with seq counting
// from 0. Files live in one folder for each working directory,
//
//	<root>/<12 hex digits of sha256(cwd)>-<base name of cwd>/<id>.jsonl
//
// with the bytes of images beside them in <id>.files/<sha256>, and <id>.lock
// while somebody writes. For the name of the folder symbolic links in cwd are
// resolved. Folders have mode 0700 and files 0600.
//
// # Rules
//
//   - Model-visible if and only if logged: every request can be rebuilt from the
//     log. [Log.Append] replaces the content of a record by what its line reads
//     back as, so that a live [State] and a reloaded one are equal by
//     construction.
//   - A record that gates an action (a user message, request header, tool call,
//     allowing decision, tool result or end of turn) is on disk before Append
//     returns. Others ride along with the next of these.
//   - A failed write loses nothing and stops nothing: the file is cut back, the
//     lines are kept in memory and written with the next record.
//   - Reading never gives up: what cannot be read is skipped, counted and named.
//     The messages of a State are always a history that an engine accepts.
//   - One writer at a time; readers need no lock.
//
// # Which calls have started
//
// After a crash a call without a result either never ran or may have taken
// effect, and the model must be told which. A call has started when the log
// holds a [ToolCall] of it with Started set or a [PermissionDecision] that allows
// it. So a call that asks is logged with Started unset, then the decision; a
// call that is free is logged once with Started set; both before it runs.
package session
