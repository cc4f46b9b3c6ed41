//go:build cgo

// Package count counts what SQLite does in this process. It registers an extension that each new connection gets, so
// that the program itself knows nothing of it.
package count

/*
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <pthread.h>

// go-sqlite3 compiles SQLite into the program, but its header is not on the path of other packages.
typedef struct sqlite3 sqlite3;
typedef struct sqlite3_stmt sqlite3_stmt;
extern int sqlite3_auto_extension(void (*entry)(void));
extern int sqlite3_trace_v2(sqlite3*, unsigned, int (*)(unsigned, void*, void*, void*), void*);
extern int sqlite3_stmt_status(sqlite3_stmt*, int, int);
extern int sqlite3_db_status(sqlite3*, int, int*, int*, int);
extern const char *sqlite3_sql(sqlite3_stmt*);

enum { PROFILE = 2, FULLSCAN_STEP = 1, VM_STEP = 4, CACHE_WRITE = 9, MOST = 2000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t statements, steps, scans, pages;
static char *texts[MOST];
static int known;

static int profiled(unsigned event, void *db, void *stmt, void *took) {
	int written = 0, high = 0;
	const char *text = sqlite3_sql(stmt);
	sqlite3_db_status(db, CACHE_WRITE, &written, &high, 1);
	pthread_mutex_lock(&lock);
	statements++;
	steps += sqlite3_stmt_status(stmt, VM_STEP, 1);
	scans += sqlite3_stmt_status(stmt, FULLSCAN_STEP, 1);
	pages += written;
	int i = 0;
	while (text && i < known && strcmp(texts[i], text)) i++;
	if (text && i == known && known < MOST) texts[known++] = strdup(text);
	pthread_mutex_unlock(&lock);
	return 0;
}

static int entry(sqlite3 *db, char **message, const void *api) {
	return sqlite3_trace_v2(db, PROFILE, profiled, db);
}

static int start(void) { return sqlite3_auto_extension((void (*)(void))entry); }

static void counts(int64_t *c) {
	pthread_mutex_lock(&lock);
	c[0] = statements; c[1] = steps; c[2] = scans; c[3] = pages;
	pthread_mutex_unlock(&lock);
}

static char *textAt(int i) {
	pthread_mutex_lock(&lock);
	char *text = i < known ? texts[i] : NULL;
	pthread_mutex_unlock(&lock);
	return text;
}
*/
import "C"

import (
	"fmt"

	_ "github.com/mattn/go-sqlite3" // SQLite itself
)

// pageBytes is what a page takes in the log: itself and the header of its frame.
const pageBytes = 4096 + 24

// Counts is what SQLite did.
type Counts struct {
	Statements, Steps, Scanned int64 // statements run, instructions of its virtual machine, rows of full scans
	Log                        int64 // bytes written to the log
	Texts                      []string
}

// Start has every connection counted that is opened from now on.
func Start() error {
	if code := C.start(); code != 0 {
		return fmt.Errorf("sqlite3_auto_extension: error %d", code)
	}
	return nil
}

// Read returns what was counted since Start, and the text of each statement once.
func Read() Counts {
	var n [4]C.int64_t
	C.counts(&n[0])
	c := Counts{Statements: int64(n[0]), Steps: int64(n[1]), Scanned: int64(n[2]), Log: int64(n[3]) * pageBytes}
	for i := C.int(0); ; i++ {
		text := C.textAt(i)
		if text == nil {
			return c
		}
		c.Texts = append(c.Texts, C.GoString(text))
	}
}
