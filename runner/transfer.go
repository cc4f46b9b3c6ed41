package runner

import "time"

// Transfer is how far the bytes of an attempt have got.
type Transfer struct {
	Sending bool      // it is the request's body; else the reply's
	Bytes   int64     // that have come, those of earlier attempts included
	Total   int64     // that will have; -1 = unknown
	From    int64     // that earlier attempts brought
	Began   time.Time // this part of it
	Over    bool      // nothing more comes
}
