package server

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
)

// handlingBuckets are the upper bounds of unary calls' times. Calls take milliseconds: one commit of the ensemble, or a look into memory.
var handlingBuckets = [...]time.Duration{
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, time.Second, 5 * time.Second,
}

// The outcomes of calls. Codes would multiply the series by seventeen.
const (
	outcomeOK = iota
	outcomeRefused
	outcomeFailed
)

var outcomeNames = [...]string{outcomeOK: "ok", outcomeRefused: "refused", outcomeFailed: "failed"}

// outcomeOf is failed if the cause is the sidecar's or the ensemble's, and refused if it is what the caller asked for.
func outcomeOf(code codes.Code) int {
	switch code {
	case codes.OK:
		return outcomeOK
	case codes.Unknown, codes.DeadlineExceeded, codes.Internal, codes.Unavailable, codes.DataLoss:
		return outcomeFailed
	default:
		return outcomeRefused
	}
}

// A handling is how long the unary calls of one method took, by their outcome.
type handling [len(outcomeNames)]times

// times is a histogram that costs a call two additions.
type times struct {
	counts [len(handlingBuckets) + 1]atomic.Uint64
	sum    atomic.Int64 // nanoseconds
}

func (h *handling) observe(code codes.Code, took time.Duration) {
	of := &h[outcomeOf(code)]
	bucket, _ := slices.BinarySearch(handlingBuckets[:], took)
	of.counts[bucket].Add(1)
	of.sum.Add(int64(took))
}

// cumulative is what has been counted, as Prometheus has it.
func (t *times) cumulative() (count uint64, seconds float64, buckets map[float64]uint64) {
	buckets = map[float64]uint64{}
	for i, bound := range handlingBuckets {
		count += t.counts[i].Load()
		buckets[bound.Seconds()] = count
	}
	return count + t.counts[len(handlingBuckets)].Load(), time.Duration(t.sum.Load()).Seconds(), buckets
}

// handlings are the histograms of all methods that have been called.
type handlings struct{ of *Metrics }

var handlingTime = prometheus.NewDesc("grpc_server_handling_seconds", "How long calls with one answer took, by their outcome.",
	[]string{"grpc_type", "grpc_service", "grpc_method", "outcome"}, nil)

// Describe implements prometheus.Collector.
func (handlings) Describe(to chan<- *prometheus.Desc) { to <- handlingTime }

// Collect implements prometheus.Collector.
func (h handlings) Collect(to chan<- prometheus.Metric) {
	h.of.calls.Range(func(method, counts any) bool {
		if counts := counts.(*callCounts); counts.times != nil {
			counts.times.collect(method.(string), to)
		}
		return true
	})
}

func (h *handling) collect(method string, to chan<- prometheus.Metric) {
	service, name := splitMethod(method)
	for outcome := range h {
		if count, sum, buckets := h[outcome].cumulative(); count > 0 {
			to <- prometheus.MustNewConstHistogram(handlingTime, count, sum, buckets, unaryCall, service, name, outcomeNames[outcome])
		}
	}
}
