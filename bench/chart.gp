# The cost of an event, by tracer: a group of bars per operation. Arguments: data, chart, and the colours of the
# tracers, a list of words: see dyntrace_bench_summary.erl.
set terminal svg size 960,480 font "sans-serif,12" background rgb "white"
set output chart
set title "Nanoseconds per trace event, above the untraced operation"
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.85 noborder
set logscale y
set yrange [1:2e9]
set format y "10^{%T}"
set grid ytics linecolor rgb "#dddddd"
set xtics rotate by -20 scale 0 nomirror noenhanced
set ytics nomirror
set border 3
set key above
plot for [i = 1:words(colours)] data using i + 1:xtic(1) title columnheader(i + 1) linecolor rgb word(colours, i)
