//go:build cgo && unix

package conn

/*
#include <signal.h>
#include <unistd.h>

static void cut_short(int number) {
	static const char line[] = "retry: a file of the journal was cut short while it was open (SIGBUS)\n"
		"hint: end what runs on this journal, and see what retry doctor says\n";
	(void)!write(2, line, sizeof line - 1);
}

// Returning runs the instruction once more, which then ends the process by the signal.
static void watch_bus(void) {
	struct sigaction action = {.sa_handler = cut_short, .sa_flags = SA_ONSTACK | SA_RESETHAND};
	sigaction(SIGBUS, &action, 0);
}
*/
import "C"

// watchBus has a line printed in place of Go's dump of all goroutines where SQLite reads the index of the WAL, which it
// maps into memory, beyond the file's end. Nothing else here maps a file.
func watchBus() { C.watch_bus() }
