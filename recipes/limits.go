package recipes

import "fmt"

// A LargeDirectory is an ErrDirectoryTooLarge that says which.
type LargeDirectory struct {
	Path       string
	Bytes, Max int // of the list of its children
}

func (l *LargeDirectory) Error() string {
	return fmt.Sprintf("%v: the list of %s takes %d bytes, and at most %d are read. Delete names that are not needed, "+
		"and spread new ones over several prefixes", ErrDirectoryTooLarge, l.Path, l.Bytes, l.Max)
}

func (l *LargeDirectory) Unwrap() error { return ErrDirectoryTooLarge }

// Facts are what programs read of it.
func (l *LargeDirectory) Facts() map[string]string {
	return map[string]string{"directory": l.Path, "bytes": fmt.Sprint(l.Bytes), "max": fmt.Sprint(l.Max)}
}

// A FullDirectory is an ErrDirectoryTooLarge of a directory that gets no more children, while its list can still be read.
type FullDirectory struct {
	Path      string
	Limit     string // what there is too much of
	Used, Max int
}

func (f *FullDirectory) Error() string {
	return fmt.Sprintf("%v: %s of %s: %d, and at most %d: delete names that are not needed, and spread new ones over several prefixes",
		ErrDirectoryTooLarge, f.Limit, f.Path, f.Used, f.Max)
}

func (f *FullDirectory) Unwrap() error { return ErrDirectoryTooLarge }

// Facts are what programs read of it.
func (f *FullDirectory) Facts() map[string]string {
	return map[string]string{"directory": f.Path, "limit": f.Limit, "used": fmt.Sprint(f.Used), "max": fmt.Sprint(f.Max)}
}

// A QuotaExceeded is an ErrQuota that says which, or at which path it was met.
type QuotaExceeded struct {
	Path              string // that has the quota
	Limit             string // `nodes` or `bytes`; empty if the ensemble refused without saying which, at this path
	Used, Wanted, Max int64
}

func (q *QuotaExceeded) Error() string {
	if q.Limit == "" {
		return fmt.Sprintf("%v: the ensemble refuses more at %s: delete what is not needed, or have the quota raised", ErrQuota, q.Path)
	}
	return fmt.Sprintf("%v: %s at and below %s: %d are used, %d more are wanted, and at most %d are allowed. "+
		"Delete what is not needed, or have the quota raised", ErrQuota, q.Limit, q.Path, q.Used, q.Wanted, q.Max)
}

func (q *QuotaExceeded) Unwrap() error { return ErrQuota }

// Facts are what programs read of it.
func (q *QuotaExceeded) Facts() map[string]string {
	if q.Limit == "" {
		return map[string]string{"path": q.Path}
	}
	return map[string]string{"path": q.Path, "limit": q.Limit, "used": fmt.Sprint(q.Used), "max": fmt.Sprint(q.Max)}
}
