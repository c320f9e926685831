# The layers of the C sources, the lowest first: c_src in the order in which an event flows, then the viewer, which
# never runs in a VM. A folder uses itself and the folders of lower layers; folders of the same layer do not use each
# other. tools/includes checks the sources, tools/circles the symbols.
BEGIN {
    layers_ = "\
c_src/catalogue\n\
c_src/text\n\
c_src/backends\n\
c_src/sources\n\
c_src/sources/compat\n\
c_src/describe\n\
c_src/status c_src/resources\n\
c_src/dyntrace_nif\n\
viewer/shared\n\
viewer/reading\n\
viewer/model/entities\n\
viewer/model/parts/held_events viewer/model/parts/call_stacks viewer/model/parts/instants viewer/model/parts/spans\n\
viewer/model/parts/scheduling viewer/model/parts/function_calls viewer/model/parts/telemetry\n\
viewer/model/parts/server_calls\n\
viewer/model/parts/messages\n\
viewer/model\n\
viewer/offsets\n\
viewer/actors\n\
viewer/summary viewer/stacks\n\
viewer/report viewer/page viewer/perfetto viewer/flame viewer/sequence viewer/otlp viewer/rows viewer/dump\n\
viewer/sinks\n\
viewer/plugin\n\
"
    n_ = split(layers_, line_, "\n")
    for (i_ = 1; i_ <= n_; i_++) {
        m_ = split(line_[i_], places_, " ")
        for (j_ = 1; j_ <= m_; j_++)
            layer[places_[j_]] = i_
    }
}

# The folder of a file: c_src/text for c_src/text/id.c, c_src/describe for c_src/describe.c. "" if it has none.
function place(path) {
    sub(/\.[a-z]+$/, "", path)
    while (!(path in layer))
        if (!sub(/\/[^\/]*$/, "", path))
            return ""
    return path
}
