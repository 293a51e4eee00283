// Package budget decides what of a conversation fits a model's context window,
// and reports everything that it leaves out.
//
// [Make] is a pure function of a [Policy] and an [Input]: the same input gives
// the same bytes, nothing is read from outside, and the input is never changed.
// A policy is a versioned value. Its constants, its estimator, its selection
// rule and its stages are data; the planner has no branch on the version.
//
// Sizes are in tokens as the policy estimates them, unless a name says bytes.
package budget
