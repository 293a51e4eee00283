// Package enginetest is a fake inference engine for tests: a real HTTP server
// that describes its models and answers as one of the engines does that drover
// knows, keeps what it was asked, and fails on a script.
//
// The server listens on loopback, or, for tests inside a bubble of
// testing/synctest, on pipes in memory ([Options.InMemory]); then the dialer
// under test has to be [Server.Dial] or one made with [Dialer].
//
// The package imports nothing else of the module, so every test can use it.
package enginetest
