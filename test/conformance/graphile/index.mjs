// The library of Graphile Worker, but for what runs jobs.
export * from 'graphile-worker';
export { runTaskListOnce } from './main.mjs';
