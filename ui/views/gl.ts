// Rectangles by the hundred thousand: one WebGL2 draw. Where the browser has no WebGL2, or loses it, the same rectangles are
// filled on a 2D canvas. Positions are CSS pixels from the upper left; text is drawn by others, above.
//
// Not instanced: a browser that draws in software (SwiftShader) begins each instance anew. Ten thousand rectangles took 0.2 s
// that way and take 0.03 s as triangles of one draw.

const VERTEX = `#version 300 es
in vec2 at; in vec4 colour; uniform vec2 size; out vec4 shade;
void main() {
  vec2 place = at / size * 2.0 - 1.0;
  gl_Position = vec4(place.x, -place.y, 0.0, 1.0);
  shade = vec4(colour.rgb * colour.a, colour.a);
}`;
const FRAGMENT = `#version 300 es
precision mediump float; in vec4 shade; out vec4 made;
void main() { made = shade; }`;

/** Rectangles as columns: x, y, width, height for each, and its colour as 0xAABBGGRR. */
export class Rects {
  count = 0;
  boxes = new Float32Array(4 * 1024);
  colours = new Uint32Array(1024);

  clear(): void {
    this.count = 0;
  }

  /** What goes on where the last one ended, in its colour, makes that one longer. */
  add(x: number, y: number, width: number, height: number, colour: number): void {
    const last = 4 * (this.count - 1);
    if (
      last >= 0 &&
      this.colours[this.count - 1] === colour &&
      this.boxes[last + 1] === Math.fround(y) &&
      this.boxes[last + 3] === height &&
      x >= this.boxes[last] &&
      x <= this.boxes[last] + this.boxes[last + 2] + 0.01
    ) {
      this.boxes[last + 2] = Math.max(this.boxes[last + 2], x + width - this.boxes[last]);
      return;
    }
    if (this.count === this.colours.length) {
      const boxes = new Float32Array(this.boxes.length * 2);
      boxes.set(this.boxes);
      this.boxes = boxes;
      const colours = new Uint32Array(this.colours.length * 2);
      colours.set(this.colours);
      this.colours = colours;
    }
    const at = 4 * this.count;
    this.boxes[at] = x;
    this.boxes[at + 1] = y;
    this.boxes[at + 2] = width;
    this.boxes[at + 3] = height;
    this.colours[this.count++] = colour;
  }
}

export interface Painter {
  readonly kind: "webgl2" | "2d";
  /** The canvas it paints on now. */
  readonly canvas: HTMLCanvasElement;
  paint(rects: Rects, width: number, height: number, ratio: number): void;
}

/** A painter for this canvas; the canvas belongs to it from now on. Where WebGL is lost, `again` is called to paint anew. */
export function painter(canvas: HTMLCanvasElement, again: () => void): Painter {
  const gl = canvas.getContext("webgl2", { antialias: false, preserveDrawingBuffer: true });
  const made = gl && webgl(gl);
  if (!made) return canvas2d(gl ? replaced(canvas) : canvas);
  let current = made;
  canvas.addEventListener("webglcontextlost", () => {
    current = canvas2d(replaced(canvas));
    again();
  });
  return {
    get kind() {
      return current.kind;
    },
    get canvas() {
      return current.canvas;
    },
    paint: (...what) => current.paint(...what),
  };
}

/** A canvas that has had a WebGL context gives no other: an equal one takes its place. */
function replaced(canvas: HTMLCanvasElement): HTMLCanvasElement {
  const fresh = canvas.cloneNode() as HTMLCanvasElement;
  canvas.replaceWith(fresh);
  return fresh;
}

function webgl(gl: WebGL2RenderingContext): Painter | null {
  const program = gl.createProgram();
  for (const [kind, text] of [
    [gl.VERTEX_SHADER, VERTEX],
    [gl.FRAGMENT_SHADER, FRAGMENT],
  ] as const) {
    const shader = gl.createShader(kind);
    if (!shader || !program) return null;
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  if (!program) return null;
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) return null;
  gl.useProgram(program);
  const corners = new Corners();
  const indices = gl.createBuffer();
  gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, indices);
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  for (const [name, size, type, normalized, offset] of [
    ["at", 2, gl.FLOAT, false, 0],
    ["colour", 4, gl.UNSIGNED_BYTE, true, 8],
  ] as const) {
    const place = gl.getAttribLocation(program, name);
    gl.enableVertexAttribArray(place);
    gl.vertexAttribPointer(place, size, type, normalized, 4 * CORNER, offset);
  }
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  const size = gl.getUniformLocation(program, "size");
  return {
    kind: "webgl2",
    canvas: gl.canvas as HTMLCanvasElement,
    paint(rects, width, height, ratio) {
      resize(gl.canvas as HTMLCanvasElement, width, height, ratio);
      gl.viewport(0, 0, gl.canvas.width, gl.canvas.height);
      gl.clearColor(0, 0, 0, 0);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.uniform2f(size, width, height);
      if (corners.fill(rects)) gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, corners.indices, gl.STATIC_DRAW);
      gl.bufferData(gl.ARRAY_BUFFER, corners.places.subarray(0, 4 * CORNER * rects.count), gl.STREAM_DRAW);
      gl.drawElements(gl.TRIANGLES, 6 * rects.count, gl.UNSIGNED_INT, 0);
    },
  };
}

/** Words of a corner: x, y, colour. */
const CORNER = 3;

/** Four corners for each rectangle, and which of them make its two triangles. */
class Corners {
  places = new Float32Array();
  indices = new Uint32Array();
  private colours = new Uint32Array();

  /** True where there are more indices than before. */
  fill({ boxes, colours, count }: Rects): boolean {
    const grown = 6 * count > this.indices.length;
    if (grown) this.grow(colours.length);
    for (let i = 0, at = 0; i < count; i++) {
      const x = boxes[4 * i];
      const y = boxes[4 * i + 1];
      for (let corner = 0; corner < 4; corner++, at += CORNER) {
        this.places[at] = corner & 1 ? x + boxes[4 * i + 2] : x;
        this.places[at + 1] = corner & 2 ? y + boxes[4 * i + 3] : y;
        this.colours[at + 2] = colours[i];
      }
    }
    return grown;
  }

  private grow(count: number): void {
    this.places = new Float32Array(4 * CORNER * count);
    this.colours = new Uint32Array(this.places.buffer);
    this.indices = new Uint32Array(6 * count);
    for (let i = 0; i < count; i++)
      this.indices.set([4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 2, 4 * i + 1, 4 * i + 3], 6 * i);
  }
}

function canvas2d(canvas: HTMLCanvasElement): Painter {
  const context = canvas.getContext("2d");
  return {
    kind: "2d",
    canvas,
    paint(rects, width, height, ratio) {
      resize(canvas, width, height, ratio);
      if (!context) return;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, height);
      let last = -1;
      for (let i = 0; i < rects.count; i++) {
        const colour = rects.colours[i];
        if (colour !== last) context.fillStyle = css((last = colour));
        const [x, y, w, h] = rects.boxes.subarray(4 * i, 4 * i + 4);
        context.fillRect(x, y, w, h);
      }
    },
  };
}

export function resize(canvas: HTMLCanvasElement, width: number, height: number, ratio: number): void {
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
}

function css(colour: number): string {
  return `rgba(${colour & 255},${(colour >>> 8) & 255},${(colour >>> 16) & 255},${(colour >>> 24) / 255})`;
}
