// When a worker that does not end by itself has nothing more to do: a second and a half after the
// last job.
const IDLE_MS = 1500
const LOOK_MS = 20

export function untilIdle() {
  let last = performance.now()
  const idle = new Promise((resolve) => {
    const timer = setInterval(() => {
      if (performance.now() - last < IDLE_MS) return
      clearInterval(timer)
      resolve()
    }, LOOK_MS)
  })
  return { seen: () => { last = performance.now() }, idle }
}
