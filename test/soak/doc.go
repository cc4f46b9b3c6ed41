// Package soak has the service carry many tasks of mixed fates for long, while its processes are killed, and compares
// what it says afterwards with the log of the target.
package soak
