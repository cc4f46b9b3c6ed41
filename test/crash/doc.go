// Package crash kills the real retry with SIGKILL, at every step of the journal that the source names and at random
// moments, with several wrappers and resumers on one journal, and checks that nothing is lost or run twice. All of it
// is tests, for Linux.
package crash
