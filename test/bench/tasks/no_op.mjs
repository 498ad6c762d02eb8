// A program of pulse-worker whose tasks do nothing, or wait for 50 ms: with the library (the
// argument `library`), or a bare loop over the lines.
import { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { task, work } from '../../../clients/node/index.mjs'

const tasks = { no_op: async () => {}, pause: async () => { await pause(50) } }
const hello = { protocol: 1, takes: 100, tasks: { no_op: {}, pause: {} }, name: 'bare' }

function bareLoop() {
  const worker = new Socket({ fd: Number(process.env.PULSE_FD), allowHalfOpen: true })
  let [rest, out] = ['', '']
  const flush = () => { worker.write(out); out = '' }
  worker.setEncoding('utf8')
  worker.write(`${JSON.stringify({ hello })}\n`)
  worker.on('data', (text) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop()
    for (const line of lines) {
      const { id, task: name, payload } = JSON.parse(line)
      tasks[name](payload).then(() => {
        if (out === '') setImmediate(flush)
        out += `{"id":"${id}","result":null}\n`
      })
    }
  })
  worker.on('end', () => worker.end())
}

if (process.argv[2] === 'library') {
  await work(Object.entries(tasks).map(([name, handler]) => task(name, handler)))
} else {
  bareLoop()
}
