package server

import (
	"cmp"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/sidekeeper/sidekeeper/service"
)

// read has a metric tell what it has counted, by the value of its one label.
func read(from prometheus.Collector, each func(label string, counted *dto.Metric)) {
	found := make(chan prometheus.Metric, 64)
	go func() {
		defer close(found)
		from.Collect(found)
	}()
	for metric := range found {
		var counted dto.Metric
		if err := metric.Write(&counted); err != nil {
			continue // of a metric that is made wrong, which its tests would have seen
		}
		label := ""
		if len(counted.GetLabel()) > 0 {
			label = counted.GetLabel()[0].GetValue()
		}
		each(label, &counted)
	}
}

// counted are the values of a counter that are not 0, by its label.
func counted(from *prometheus.CounterVec) map[string]int {
	counts := map[string]int{}
	read(from, func(label string, counted *dto.Metric) {
		if count := int(counted.GetCounter().GetValue()); count > 0 {
			counts[label] = count
		}
	})
	return counts
}

// bucketCounts are how often each operation took at most how long, since the sidecar has begun.
type bucketCounts map[string][]uint64

func (m *Metrics) requests() bucketCounts {
	sheet := bucketCounts{}
	read(m.requestTime, func(operation string, counted *dto.Metric) {
		histogram := counted.GetHistogram()
		var row []uint64
		for _, bucket := range histogram.GetBucket() {
			row = append(row, bucket.GetCumulativeCount())
		}
		sheet[operation] = append(row, histogram.GetSampleCount())
	})
	return sheet
}

// latencies are those between two bucket counts; the earlier one may be nil.
func latencies(earlier, later bucketCounts, over time.Duration) []service.Latency {
	found := []service.Latency{}
	for operation, row := range later {
		since := slices.Clone(row)
		for i, before := range earlier[operation] {
			since[i] -= before
		}
		count := since[len(since)-1]
		if count == 0 {
			continue
		}
		found = append(found, service.Latency{
			Operation: operation, Rate: float64(count) / over.Seconds(), P50: quantile(since, 0.5), P99: quantile(since, 0.99),
		})
	}
	slices.SortFunc(found, func(a, b service.Latency) int { return cmp.Compare(a.Operation, b.Operation) })
	return found
}

// quantile is the time within which that part of the requests was answered, spread evenly between the bounds of its bucket.
// Beyond the last bound it is that bound.
func quantile(cumulative []uint64, part float64) float64 {
	rank := part * float64(cumulative[len(cumulative)-1])
	below, lower := 0.0, 0.0
	for i, upper := range shortTimes {
		within := float64(cumulative[i])
		if within >= rank {
			return lower + (upper-lower)*(rank-below)/(within-below)
		}
		below, lower = within, upper
	}
	return shortTimes[len(shortTimes)-1]
}
