package main

import (
	"fmt"
	"slices"
	"time"
)

// percentile is the smallest value that so many percent of the values do not exceed; 0 of none.
func percentile(values []time.Duration, percent int) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

// median is the median of what a batch has measured, in seconds.
func (b batch) median() float64 { return percentile(b.took, 50).Seconds() }

// total is all batches of one contender as if they were one.
func total(batches []batch) batch {
	var all batch
	for _, b := range batches {
		all.took = append(all.took, b.took...)
		all.count += b.count
		all.elapsed += b.elapsed
		all.client += b.client
		all.sidecar += b.sidecar
		all.servers += b.servers
	}
	return all
}

// ratio is the median of the rounds' ratios.
func ratio(ours, theirs []batch, of func(batch) float64) string {
	ratios := make([]float64, 0, len(ours))
	for i := range ours {
		ratios = append(ratios, of(ours[i])/of(theirs[i]))
	}
	return fmt.Sprintf("%.2f", middle(ratios))
}

// middle is the median; of an even number of values the mean of the two in the middle.
func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}

func microseconds(d time.Duration) string {
	return fmt.Sprintf("%.0f", float64(d)/float64(time.Microsecond))
}

func only(there bool, text string) string {
	if there {
		return text
	}
	return "–"
}
