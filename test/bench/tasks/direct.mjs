// A worker in the direct mode whose task does nothing, with so many jobs at once (the argument), or
// with no option. It ends when nothing has come for a while.
import { task, work } from '../../../clients/node/index.mjs'
import { untilIdle } from './idle.mjs'

const [takes] = process.argv.slice(2)
const { seen, idle } = untilIdle()
idle.then(() => process.kill(process.pid, 'SIGTERM'))
await work([task('no_op', async () => seen())], takes ? { takes: Number(takes) } : {})
