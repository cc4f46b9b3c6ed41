//go:build cgo

package state

/*
#include <malloc.h>

// SQLite is used by one thread at a time, though not always by the same one. glibc would give each of them an arena of its own,
// which grows by a system call for every page: a tenth of what the journal costs a start.
__attribute__((constructor)) static void useOneArena(void)
{
#ifdef __GLIBC__
	mallopt(M_ARENA_MAX, 1);
#endif
}
*/
import "C"
