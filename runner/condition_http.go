package runner

import "slices"

// faults are the classes of error that a list can name, beside timeout.
var faults = []ErrorClass{ErrorDNS, ErrorConnect, ErrorTLS, ErrorReset, ErrorTruncated}

func isFault(item string) bool { return slices.Contains(faults, ErrorClass(item)) }

// isStatusClass recognises 4xx.
func isStatusClass(item string) bool {
	return len(item) == 3 && item[1:] == "xx" && '1' <= item[0] && item[0] <= '9'
}

// number is what the numbers of a list are compared with. A reply that failed in spite of its status has none.
func (o Outcome) number() int {
	switch {
	case o.HTTP == nil:
		return o.ExitCode()
	case o.Error != ErrorNone:
		return NoExit
	}
	return o.HTTP.Status
}
