package session

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// dropCode unmaps the pages of the program's file that are only read: they come back from the page cache where they are used, but page by
// page, no longer two megabytes at a time. An error costs memory alone.
func dropCode() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, s := range unwritten(string(smaps), program) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, s.start, s.size, unix.MADV_NOHUGEPAGE)
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, s.start, s.size, unix.MADV_DONTNEED)
	}
}

// mapping is a piece of the address space, in bytes.
type mapping struct{ start, size uintptr }

// unwritten reads /proc/PID/smaps: what is mapped of the program without leave to write. Not where a page differs from the file, as in
// tables that the loader filled before they were made read-only: that page would be lost.
func unwritten(smaps, program string) (pieces []mapping) {
	var piece mapping
	clean := false
	for line := range strings.Lines(smaps) {
		fields := strings.Fields(line)
		switch {
		case len(fields) >= 6 && len(fields[1]) == 4:
			piece = span(fields[0])
			readOnly := fields[1] == "r-xp" || fields[1] == "r--p"
			clean = readOnly && piece.size > 0 && strings.HasSuffix(strings.TrimSuffix(line, "\n"), " "+program)
		case len(fields) == 3 && fields[0] == "Anonymous:":
			clean = clean && fields[1] == "0"
		case len(fields) == 3 && fields[0] == "Swap:": // after Anonymous
			if clean && fields[1] == "0" {
				pieces = append(pieces, piece)
			}
			clean = false
		}
	}
	return pieces
}

// span reads FROM-TO; a size of 0 is none.
func span(text string) mapping {
	from, to, _ := strings.Cut(text, "-")
	low, err := strconv.ParseUint(from, 16, strconv.IntSize)
	if err != nil {
		return mapping{}
	}
	high, err := strconv.ParseUint(to, 16, strconv.IntSize)
	if err != nil || high < low {
		return mapping{}
	}
	return mapping{uintptr(low), uintptr(high - low)}
}
