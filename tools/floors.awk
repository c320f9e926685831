# The layers ("floors") of the C sources, the lowest first: c_src in the order in which an event flows, then the viewer,
# which never runs in a VM. A folder ("place") may use itself and the folders of lower layers, but not the other folders
# of its own layer. tools/includes checks this for the includes, tools/circles for the symbols.
BEGIN {
    floors_ = "\
c_src/catalogue\n\
c_src/text\n\
c_src/backends\n\
c_src/sources\n\
c_src/describe\n\
c_src/status c_src/layout\n\
c_src/dyntrace_nif\n\
viewer/shared\n\
viewer/reading\n\
viewer/model/entities\n\
viewer/model/parts/held viewer/model/parts/stacks viewer/model/parts/instants viewer/model/parts/spans\n\
viewer/model/parts/scheduling viewer/model/parts/calls\n\
viewer/model/parts/server_calls\n\
viewer/model/parts/messages\n\
viewer/model\n\
viewer/offsets\n\
viewer/who\n\
viewer/summary viewer/stacks\n\
viewer/report viewer/page viewer/perfetto viewer/flame viewer/sequence viewer/dump\n\
viewer/sinks\n\
viewer/plugin\n\
"
    n_ = split(floors_, line_, "\n")
    for (i_ = 1; i_ <= n_; i_++) {
        m_ = split(line_[i_], places_, " ")
        for (j_ = 1; j_ <= m_; j_++)
            floor[places_[j_]] = i_
    }
}

# The folder of a file: c_src/text for c_src/text/id.c, c_src/describe for c_src/describe.c. "" if it has none.
function place(path) {
    sub(/\.[a-z]+$/, "", path)
    while (!(path in floor))
        if (!sub(/\/[^\/]*$/, "", path))
            return ""
    return path
}
