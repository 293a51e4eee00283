// Package tui is the same agent for a person at a terminal.
//
// [Run] shows a screen of its own: a transcript, a composer and a status line.
// It is one value that messages update, and what is shown is a function of that
// value; nothing else is remembered. Everything slow (looking for engines,
// opening a session, a turn) happens in the desk, beside the screen, and comes
// back as messages. [RunPlain] shows the same on lines, without moving the
// cursor, for screen readers and for terminals that can do no more.
//
// Rules of the package: nothing that comes from outside reaches the terminal
// except through cells, which takes out everything that could change the
// terminal; no line is wider than the screen; what is not on the screen is not
// rendered; the screen is drawn at most 30 times a second; a question that
// nobody waits for any more cannot be answered.
package tui
