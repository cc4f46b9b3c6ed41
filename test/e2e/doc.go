// Package e2e tests the program as a whole: the scripts of testdata, sessions on a terminal, HTTP against servers of
// its own, failing systems, and the examples of the pages in docs. All of it is tests.
package e2e
