// The timeline's input: wheel, keys and pointers. Two pointers zoom.

import { ROW } from "./paint.js";
import { choose, pan, range, setRange, zoom } from "./shared.js";

export class Input {
    constructor(timeline) {
        this.timeline = timeline;
        this.pointers = new Map();
        const { canvas, scroller } = timeline;
        const on = (name, listener) => canvas.addEventListener(name, listener);
        on("keydown", (event) => this.key(event));
        on("pointerdown", (event) => this.press(event));
        on("pointermove", (event) => this.move(event));
        on("pointerup", (event) => this.release(event));
        on("pointercancel", (event) => this.release(event));
        on("pointerleave", () => timeline.tips.hide());
        on("dblclick", (event) => zoom(0.25, this.timeAt(event)));
        scroller.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    }

    timeAt(event) {
        const box = this.timeline.canvas.getBoundingClientRect();
        return range.begin + ((event.clientX - box.left) / box.width) * (range.end - range.begin);
    }

    wheel(event) {
        const active = document.activeElement === this.timeline.canvas && this.timeline.stage.contains(event.target);
        if (
            event.ctrlKey ||
            event.metaKey ||
            (active && !event.shiftKey && Math.abs(event.deltaY) > Math.abs(event.deltaX))
        ) {
            event.preventDefault();
            zoom(
                Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * (event.ctrlKey ? 0.006 : 0.004)),
                this.timeAt(event),
            );
        } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
            event.preventDefault();
            pan((event.deltaX || event.deltaY) / this.timeline.stage.clientWidth);
        }
    }

    key(event) {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        const actions = {
            "+": () => zoom(0.5),
            "=": () => zoom(0.5),
            "-": () => zoom(2),
            ArrowLeft: () => pan(event.shiftKey ? -0.5 : -0.1),
            ArrowRight: () => pan(event.shiftKey ? 0.5 : 0.1),
            ArrowUp: () => this.timeline.scroller.scrollBy(0, -ROW * 2),
            ArrowDown: () => this.timeline.scroller.scrollBy(0, ROW * 2),
            PageUp: () => this.timeline.scroller.scrollBy(0, -this.timeline.stage.clientHeight),
            PageDown: () => this.timeline.scroller.scrollBy(0, this.timeline.stage.clientHeight),
            Home: () => setRange(0, range.whole),
            0: () => setRange(0, range.whole),
            Escape: () => choose(null),
        };
        if (!actions[event.key]) return;
        event.preventDefault();
        actions[event.key]();
    }

    press(event) {
        if (event.button !== 0) return;
        this.timeline.canvas.setPointerCapture(event.pointerId);
        this.pointers.set(event.pointerId, event);
        this.drag = {
            x: event.clientX,
            y: event.clientY,
            begin: range.begin,
            end: range.end,
            top: this.timeline.scroller.scrollTop,
            moved: false,
        };
    }

    move(event) {
        if (!this.pointers.has(event.pointerId)) return this.timeline.tips.show(event);
        const before = this.pointers.get(event.pointerId);
        this.pointers.set(event.pointerId, event);
        if (this.pointers.size === 2) {
            const [other] = [...this.pointers.values()].filter((pointer) => pointer.pointerId !== event.pointerId);
            const apart = (one) => Math.max(20, Math.abs(one.clientX - other.clientX));
            zoom(apart(before) / apart(event), this.timeAt(other));
            this.drag = null;
        } else if (this.drag) {
            const by = event.clientX - this.drag.x;
            if (Math.abs(by) + Math.abs(event.clientY - this.drag.y) > 3) this.drag.moved = true;
            if (!this.drag.moved) return;
            this.timeline.tips.hide();
            const ns = (by / this.timeline.stage.clientWidth) * (this.drag.end - this.drag.begin);
            setRange(this.drag.begin - ns, this.drag.end - ns);
            if (event.pointerType === "mouse")
                this.timeline.scroller.scrollTop = this.drag.top - (event.clientY - this.drag.y);
        }
    }

    release(event) {
        this.pointers.delete(event.pointerId);
        this.drag = null;
    }
}
